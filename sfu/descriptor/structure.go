package descriptor

// Layer is a spatial and a temporal layer, each counted from 0.
type Layer struct{ Spatial, Temporal uint8 }

// Resolution is the size of a picture in pixels.
type Resolution struct{ Width, Height int }

// Structure is the template dependency structure that the frames of a stream share. It is immutable once read.
type Structure struct {
	offset      uint8 // id of the first template
	templates   [maxTemplates]template
	count       int
	targets     [MaxTargets]Layer
	targetCount int
	spatial     int // layers
	resolutions [MaxLayers]Resolution
}

type template struct {
	layer          Layer
	indications    indications
	references     [MaxReferences]uint8
	referenceCount uint8
}

// TargetCount returns the number of decode targets.
func (s *Structure) TargetCount() int { return s.targetCount }

// Target returns the highest layer of decode target d.
func (s *Structure) Target(d int) Layer { return s.targets[d] }

// SpatialLayers returns the number of spatial layers, at least 1.
func (s *Structure) SpatialLayers() int { return s.spatial }

// Resolution returns the size of a spatial layer, zero if it is unknown.
func (s *Structure) Resolution(spatial int) Resolution { return s.resolutions[spatial] }

func (s *Structure) all() uint32 { return uint32(1<<s.targetCount - 1) }

// template returns the template with an id, nil if the structure has none with that id.
func (s *Structure) template(id int) *template {
	if i := (id - int(s.offset)) & (maxTemplates - 1); i < s.count {
		return &s.templates[i]
	}
	return nil
}

func (s *Structure) read(in *bitReader) error {
	s.offset = uint8(in.read(6))
	s.targetCount = in.read(5) + 1
	if !s.readLayers(in) {
		return ErrMalformed
	}
	for i := range s.count {
		s.templates[i].indications = readIndications(in, s.targetCount)
	}
	for i := range s.count {
		if !s.templates[i].readReferences(in) {
			return ErrMalformed
		}
	}
	s.passChains(in)
	s.findTargets()
	if in.flag() {
		for i := range s.spatial {
			s.resolutions[i] = Resolution{Width: in.read(16) + 1, Height: in.read(16) + 1}
		}
	}
	if in.exhausted {
		return ErrMalformed
	}
	return nil
}

func (s *Structure) readLayers(in *bitReader) bool {
	const (
		nextTemporal = 1
		nextSpatial  = 2
		noMore       = 3
	)
	var at Layer
	for {
		if s.count == maxTemplates || at.Spatial == MaxLayers || at.Temporal == MaxLayers {
			return false
		}
		s.templates[s.count].layer = at
		s.count++
		switch in.read(2) {
		case nextTemporal:
			at.Temporal++
		case nextSpatial:
			at = Layer{Spatial: at.Spatial + 1}
		case noMore:
			s.spatial = int(at.Spatial) + 1
			return true
		}
	}
}

func (t *template) readReferences(in *bitReader) bool {
	for in.flag() {
		if t.referenceCount == MaxReferences {
			return false
		}
		t.references[t.referenceCount] = uint8(in.read(4)) + 1
		t.referenceCount++
	}
	return true
}

func (s *Structure) passChains(in *bitReader) {
	chains := in.below(s.targetCount + 1)
	if chains == 0 {
		return
	}
	for range s.targetCount {
		in.below(chains)
	}
	for range s.count * chains {
		in.read(4)
	}
}

func (s *Structure) findTargets() {
	for i := range s.count {
		t := &s.templates[i]
		for d := range Targets(t.indications.present) {
			s.targets[d].Spatial = max(s.targets[d].Spatial, t.layer.Spatial)
			s.targets[d].Temporal = max(s.targets[d].Temporal, t.layer.Temporal)
		}
	}
}
