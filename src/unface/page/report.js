// Each sweep over ranks: the slider chooses a rank, the table and the charts follow. All words come ready made.
for (const sweep of document.querySelectorAll("[data-sweep]")) {
  const { ranks, said, cells } = JSON.parse(sweep.querySelector('script[type="application/json"]').textContent);
  const slider = sweep.querySelector("input[type=range]");
  const shown = [...sweep.querySelectorAll("output, [data-rank-said]")];
  const places = [...sweep.querySelectorAll("[data-cell]")];
  const marks = [...sweep.querySelectorAll("path[data-rank]")];

  const show = () => {
    const index = Number(slider.value);
    slider.setAttribute("aria-valuetext", said[index]);
    shown.forEach((place) => { place.textContent = ranks[index]; });
    cells[index].flat().forEach((text, at) => { places[at].textContent = text; });
    marks.forEach((mark) => { mark.classList.toggle("chosen", Number(mark.dataset.rank) === ranks[index]); });
  };

  slider.addEventListener("input", show);
  slider.closest("[hidden]").hidden = false;
  show();
}
