package load

import "github.com/holdfast-rtc/holdfast/lab/measure"

// Distribution is a sample in milliseconds, as the report tells it.
type Distribution = measure.Distribution

type sample = measure.Sample
