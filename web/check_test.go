package web_test

import (
	"os/exec"
	"testing"
)

// TestTypes checks the JSDoc of the library and the page with the TypeScript
// compiler, which emits nothing: the sources are what is served.
func TestTypes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), tool(t, "tsc"), "-p", "tsconfig.json").CombinedOutput()
	if err != nil {
		t.Fatalf("tsc -p web/tsconfig.json: %v\n%s", err, out)
	}
}
