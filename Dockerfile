# The command line in a container, from a wheel: python -m build --wheel, then docker build -t unface .
#   docker run --rm -v "$PWD:/data" unface audit sample.parquet --out audit
FROM python:3.11-slim-bookworm

ARG EXTRAS=""
COPY dist/unface-*.whl constraints.txt /tmp/unface/
RUN wheel="$(ls /tmp/unface/unface-*.whl)" \
    && pip install --no-cache-dir --no-compile -c /tmp/unface/constraints.txt "${wheel}${EXTRAS:+[$EXTRAS]}" \
    && rm -r /tmp/unface \
    && unface --version

# Results belong to whoever starts the container with --user; nothing here needs root.
RUN useradd --create-home --uid 1000 unface
USER unface
WORKDIR /data
ENTRYPOINT ["unface"]
CMD ["--help"]
