package node

import (
	"log/slog"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
)

type tracesFlag struct {
	TracesURL string `placeholder:"URL" help:"An OpenTelemetry collector that takes traces of joins and failovers by OTLP over HTTP, such as http://collector:4318. Without it nothing is traced."`
}

// checkTraces is told the share of the joins that are traced. Media nodes begin no trace, and so have none.
func (f tracesFlag) checkTraces(sample float64) error {
	return traces.Config{URL: f.TracesURL, Sample: sample}.Validate()
}

// tracer returns nil if nothing is traced.
func (f tracesFlag) tracer(sample float64, self cluster.Node, guard *panics.Guard, log *slog.Logger) (*traces.Tracer, error) {
	return traces.New(traces.Config{
		URL: f.TracesURL, Sample: sample, Node: string(self.ID), Role: string(self.Role), Version: self.Version, Panics: guard,
	}, log)
}
