# Part of Bastile, under the MIT License. See LICENSE.
#
# Debian 12 with everything that Bastile is built and tested with:
#
#   docker build -t bastile .
#   docker run --rm -it bastile
#
# In the shell that opens, `make demo` and `make test` work as they are. With --gpus all,
# for which the host needs NVIDIA's container toolkit, they use the GPU as well.
FROM debian:12

ENV LANG=C.UTF-8
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git make

# The packages are a layer of their own, which changes of the code leave as it is.
WORKDIR /bastile
COPY scripts/setup.sh scripts/requirements*.txt scripts/
RUN scripts/setup.sh

COPY . .
CMD ["bash"]
