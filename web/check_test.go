package web_test

import (
	"os/exec"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// TestTypes checks the JSDoc of the library and the page with the TypeScript
// compiler, which emits nothing: the sources are what is served.
func TestTypes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), tool.Find(t, "tsc"), "-p", "tsconfig.json").CombinedOutput()
	if err != nil {
		t.Fatalf("tsc -p web/tsconfig.json: %v\n%s", err, out)
	}
}
