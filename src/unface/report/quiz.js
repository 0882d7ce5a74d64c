// One question at a time; the answers leave as a file and go nowhere else.
const { quiz, items } = JSON.parse(document.getElementById("items").textContent);
const schema = "unface.quiz-answers/1";
const answers = new Array(items.length).fill(null);
const form = document.getElementById("question");
const face = document.getElementById("face");
const pictures = [...form.querySelectorAll("label img")];
const choices = [...form.querySelectorAll("input")];
const next = document.getElementById("next");
let at = 0;

const show = () => {
  const item = items[at];
  face.src = item.face;
  pictures.forEach((picture, place) => { picture.src = item.candidates[place]; });
  choices.forEach((choice) => { choice.checked = false; });
  next.disabled = true;
  next.textContent = at + 1 < items.length ? "Next" : "Finish";
  document.getElementById("place").textContent = `Question ${at + 1} of ${items.length}`;
};

form.addEventListener("change", () => { next.disabled = false; });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  answers[at] = choices.findIndex((choice) => choice.checked);
  at += 1;
  if (at < items.length) { show(); choices[0].focus(); return; }
  const text = JSON.stringify({ schema, quiz, answers });
  const link = document.getElementById("save");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = `answers-${Date.now().toString(36)}.json`;
  form.hidden = true;
  document.getElementById("done").hidden = false;
  link.focus();
});
form.hidden = false;
show();
