package chaos

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// edit changes one declaration of the product. It says where by name and by the shape of the syntax tree, so that comments,
// layout and the names of local variables may change.
type edit struct {
	in   string // the package's directory from the module's root
	decl string // a function, a method as "Type.method", a constant or a variable
	// from is an expression, a "key: value" or statements. Its names that begin with _ match any expression.
	// Empty is the beginning of a function, or the whole value of a constant. In a constant it is plain text.
	from string
	// to replaces it. There _x is what _x matched, _recv the receiver and _arg1 the first argument of the function.
	to string
}

var wildcard = regexp.MustCompile(`\b_[a-z]\w*`)

// bindings are what the wildcards stand for, as source text.
type bindings map[string]string

// place is a part of a source text that an edit replaces.
type place struct {
	begin, end int
	bound      bindings
}

// sourceFile is a file of the product.
type sourceFile struct {
	text string
	tree *ast.File
	base int // token.Pos of the first byte
}

func parseSource(text string) (*sourceFile, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &sourceFile{text, tree, files.File(tree.Pos()).Base()}, nil
}

func (s *sourceFile) at(p token.Pos) int { return int(p) - s.base }

func (s *sourceFile) source(n ast.Node) string { return s.text[s.at(n.Pos()):s.at(n.End())] }

// apply returns the text with one place changed.
func (s *sourceFile) apply(p place, to string) string {
	filled := wildcard.ReplaceAllStringFunc(to, func(name string) string {
		if text, ok := p.bound[name]; ok {
			return text
		}
		return name
	})
	return s.text[:p.begin] + filled + s.text[p.end:]
}

// places lists where an edit applies.
func (s *sourceFile) places(e edit) ([]place, error) {
	var list []place
	for _, d := range s.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || nameOf(d) != e.decl {
				continue
			}
			found, err := s.inFunction(d, e.from)
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && len(value.Values) == 1 && value.Names[0].Name == e.decl {
					list = append(list, s.inValue(value.Values[0], e.from)...)
				}
			}
		}
	}
	return list, nil
}

// inValue takes the value of a constant, or each occurrence of a text in it.
func (s *sourceFile) inValue(value ast.Expr, from string) []place {
	begin, end := s.at(value.Pos()), s.at(value.End())
	if from == "" {
		return []place{{begin: begin, end: end}}
	}
	var list []place
	for {
		next := strings.Index(s.text[begin:end], from)
		if next < 0 {
			return list
		}
		begin += next + len(from)
		list = append(list, place{begin: begin - len(from), end: begin})
	}
}

// inFunction takes the beginning of a function, or each part of its body that has the shape of a pattern.
func (s *sourceFile) inFunction(f *ast.FuncDecl, from string) ([]place, error) {
	names := s.parameters(f)
	if from == "" {
		begin := s.at(f.Body.Lbrace) + 1
		return []place{{begin, begin, names}}, nil
	}
	pattern, err := parsePattern(from)
	if err != nil {
		return nil, err
	}
	var list []place
	try := func(nodes []ast.Node) {
		bound := maps.Clone(names)
		for i, want := range pattern {
			if !s.match(reflect.ValueOf(want), reflect.ValueOf(nodes[i]), bound) {
				return
			}
		}
		list = append(list, place{s.at(nodes[0].Pos()), s.at(nodes[len(nodes)-1].End()), bound})
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, ok := pattern[0].(ast.Expr); ok {
			if _, ok := n.(ast.Expr); ok {
				try([]ast.Node{n})
			}
			return true
		}
		run := statements(n)
		for i := range max(len(run)-len(pattern)+1, 0) {
			try(run[i : i+len(pattern)])
		}
		return true
	})
	return list, nil
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
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// parameters are the names of the receiver and of the arguments.
func (s *sourceFile) parameters(f *ast.FuncDecl) bindings {
	names := bindings{}
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

// statements are those that stand directly in n.
func statements(n ast.Node) (nodes []ast.Node) {
	var list []ast.Stmt
	switch n := n.(type) {
	case *ast.BlockStmt:
		list = n.List
	case *ast.CaseClause:
		list = n.Body
	case *ast.CommClause:
		list = n.Body
	}
	for _, s := range list {
		nodes = append(nodes, s)
	}
	return nodes
}

func parsePattern(text string) ([]ast.Node, error) {
	if e, err := parser.ParseExpr(text); err == nil {
		return []ast.Node{e}, nil
	}
	if e, err := parser.ParseExpr("T{" + text + "}"); err == nil {
		if literal, ok := e.(*ast.CompositeLit); ok && len(literal.Elts) == 1 {
			return []ast.Node{literal.Elts[0]}, nil
		}
	}
	e, err := parser.ParseExpr("func() {\n" + text + "\n}")
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", text, err)
	}
	if f, ok := e.(*ast.FuncLit); ok && len(f.Body.List) > 0 {
		return statements(f.Body), nil
	}
	return nil, fmt.Errorf("pattern %q is empty", text)
}

// match compares two syntax trees but for their positions, and binds the wildcards of want.
func (s *sourceFile) match(want, got reflect.Value, bound bindings) bool {
	for want.Kind() == reflect.Interface {
		want = want.Elem()
	}
	for got.Kind() == reflect.Interface {
		got = got.Elem()
	}
	if !want.IsValid() || !got.IsValid() {
		return want.IsValid() == got.IsValid()
	}
	if name, ok := reflect.TypeAssert[*ast.Ident](want); ok && name != nil && wildcard.MatchString(name.Name) {
		e, ok := reflect.TypeAssert[ast.Expr](got)
		if !ok || got.IsNil() {
			return false
		}
		known, again := bound[name.Name]
		bound[name.Name] = s.source(e)
		return !again || known == bound[name.Name]
	}
	if want.Type() != got.Type() {
		return false
	}
	switch want.Kind() {
	case reflect.Pointer:
		if want.IsNil() || got.IsNil() {
			return want.IsNil() == got.IsNil()
		}
		return s.match(want.Elem(), got.Elem(), bound)
	case reflect.Struct:
		for i := range want.NumField() {
			if want.Type().Field(i).Type != reflect.TypeFor[token.Pos]() && !s.match(want.Field(i), got.Field(i), bound) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if want.Len() != got.Len() {
			return false
		}
		for i := range want.Len() {
			if !s.match(want.Index(i), got.Index(i), bound) {
				return false
			}
		}
		return true
	default:
		return want.Equal(got)
	}
}
