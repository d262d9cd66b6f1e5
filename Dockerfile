# The image for people: built from source, runs as nobody, contains the binary of nodes (no lab) and its licences.
#
#   docker build -t holdfast .
#   docker run --rm holdfast --help
#
# It needs a registry for the Go image. There was none where it was written, so building it is not verified; the
# commands in it are those that the tests run outside a container. It uses no BuildKit-only feature.
FROM golang:1.26-alpine AS build
WORKDIR /src
# The modules first: they change seldom, so their layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Without cgo the binary is static and runs on an empty image.
RUN CGO_ENABLED=0 go build -tags node -trimpath -ldflags "-s -w" -o /holdfast .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /holdfast /holdfast
COPY LICENSE NOTICE /
# A number, because an empty image knows no names.
USER 65534:65534
# The page and API; gossip (TCP and UDP); control; media.
EXPOSE 7880/tcp 7946/tcp 7946/udp 7981/tcp 7983/tcp 7982/udp 7982/tcp
ENTRYPOINT ["/holdfast"]
