package chaos

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// edit changes one declaration of the product. It names the declaration, so that comments, layout and the names of local
// variables may change.
type edit struct {
	in   string // the package's directory from the module's root
	decl string // a function, a method as "Type.method", a constant or a variable; or a whole file that is not Go, by name
	// from is a part of it. Its names that begin with _ match any operand, its spaces any space.
	// Empty is the beginning of a function, or the whole value of a constant.
	from string
	// to replaces it. There _x is what _x matched, _recv the receiver and _arg1 the first argument of the function.
	to string
}

// operand is a name with its selectors, calls and indices.
const operand = `\b[\w.]+(?:\([\w., ]*\)[\w.]*|\[[\w.]*\])*`

var (
	wildcard = regexp.MustCompile(`\b_[a-z]\w*`)
	spaces   = regexp.MustCompile(`\s+`)
)

// isFile tells a file's name from a declaration: only Lua has edits of a whole file.
func (e edit) isFile() bool { return strings.HasSuffix(e.decl, ".lua") }

// pattern makes from a regular expression with a group for each of its wildcards.
func (e edit) pattern(bound map[string]string) (*regexp.Regexp, []string) {
	var names []string
	text := wildcard.ReplaceAllStringFunc(regexp.QuoteMeta(e.from), func(name string) string {
		if known, ok := bound[name]; ok {
			return known
		}
		names = append(names, name)
		return `(` + operand + `)`
	})
	return regexp.MustCompile(spaces.ReplaceAllString(text, `\s+`)), names
}

// apply returns the source text once for each place at which the edit applies, changed there.
func (e edit) apply(text string) ([]string, error) {
	if e.isFile() {
		var changed []string
		pattern, _ := e.pattern(nil)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			changed = append(changed, text[:at[0]]+e.to+text[at[1]:])
		}
		return changed, nil
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	base := files.File(tree.Pos()).Base()
	var changed []string
	try := func(first, last token.Pos, bound map[string]string, whole bool) {
		begin, end := int(first)-base, int(last)-base
		if e.from == "" {
			if !whole {
				end = begin
			}
			changed = append(changed, text[:begin]+fill(e.to, bound)+text[end:])
			return
		}
		pattern, names := e.pattern(bound)
		for _, at := range pattern.FindAllStringSubmatchIndex(text[begin:end], -1) {
			for i, name := range names {
				bound[name] = text[begin+at[2*i+2] : begin+at[2*i+3]]
			}
			changed = append(changed, text[:begin+at[0]]+fill(e.to, bound)+text[begin+at[1]:])
		}
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && nameOf(d) == e.decl {
				try(d.Body.Lbrace+1, d.Body.Rbrace, parameters(d), false)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && len(value.Values) == 1 && value.Names[0].Name == e.decl {
					try(value.Values[0].Pos(), value.Values[0].End(), map[string]string{}, true)
				}
			}
		}
	}
	return changed, nil
}

// fill puts in what the wildcards of a replacement stand for.
func fill(to string, bound map[string]string) string {
	return wildcard.ReplaceAllStringFunc(to, func(name string) string {
		if text, ok := bound[name]; ok {
			return text
		}
		return name
	})
}

// nameOf is a function's name, a method's with the type of its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return strings.TrimPrefix(name.String()+"."+f.Name.Name, "<nil>.")
}

// parameters are the names of the receiver and of the arguments.
func parameters(f *ast.FuncDecl) map[string]string {
	names := make(map[string]string)
	if f.Recv != nil && len(f.Recv.List[0].Names) == 1 {
		names["_recv"] = f.Recv.List[0].Names[0].Name
	}
	n := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			n++
			names["_arg"+strconv.Itoa(n)] = name.Name
		}
	}
	return names
}
