package catalogue

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Skill is a SKILL.md: a text that a model reads when it needs it.
type Skill struct {
	Name        string // of the front matter, or of the folder
	Description string // of the front matter, on one line
	Chars       int    // of the whole file
	file        string
}

// Skills are those found below some folders. The zero value and nil hold none.
type Skills struct {
	list  []Skill
	notes []string
}

const (
	skillFile = "SKILL.md"
	// maxSkill bounds a skill's size in bytes, maxSkills how many there are.
	maxSkill, maxSkills = 1 << 20, 1000
)

// FindSkills reads every SKILL.md one or two levels below each folder, in the
// order of the folders and by path. What is left out is told in the notes.
func FindSkills(folders []string) *Skills {
	s := &Skills{}
	for _, folder := range folders {
		if _, err := os.ReadDir(folder); err != nil {
			s.notef("skills: %v", err)
			continue
		}
		var found []string
		for _, levels := range []string{"*", filepath.Join("*", "*")} {
			below, _ := filepath.Glob(filepath.Join(escaped(folder), levels, skillFile)) // its error is of the pattern alone
			found = append(found, below...)
		}
		slices.Sort(found)
		for _, file := range found {
			s.add(file)
		}
	}
	return s
}

// escaped takes the meaning from a pattern's characters in a path.
func escaped(path string) string {
	if filepath.Separator == '\\' {
		return path // there a pattern has no escapes
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func (s *Skills) notef(format string, a ...any) { s.notes = append(s.notes, fmt.Sprintf(format, a...)) }

func (s *Skills) add(file string) {
	text, err := readSkill(file)
	if err != nil {
		s.notef("skills: %v", err)
		return
	}
	k := Skill{Name: filepath.Base(filepath.Dir(file)), Chars: utf8.RuneCountInString(text), file: file}
	name, description := frontMatter(text)
	if name != "" && !isPath(name) {
		k.Name = name
	}
	k.Description = oneLine(description)
	switch {
	case s.has(k.Name):
		s.notef("skills: %s: a skill %q is there already; this one is left out", file, k.Name)
	case len(s.list) >= maxSkills:
		s.notef("skills: %s is left out: there are %d already", file, maxSkills)
	default:
		s.list = append(s.list, k)
	}
}

func (s *Skills) has(name string) bool {
	return slices.ContainsFunc(s.list, func(k Skill) bool { return k.Name == name })
}

// isPath says whether a text could lead out of a folder.
func isPath(name string) bool { return strings.ContainsAny(name, `/\`) || strings.Contains(name, "..") }

func readSkill(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSkill+1))
	if err == nil && len(b) > maxSkill {
		err = fmt.Errorf("%s is larger than %d bytes", file, maxSkill)
	}
	return string(b), err
}

// All lists the skills. s may be nil.
func (s *Skills) All() []Skill {
	if s == nil {
		return nil
	}
	return slices.Clone(s.list)
}

// Notes tell what was left out, and why.
func (s *Skills) Notes() []string { return slices.Clone(s.notes) }

// Names are those of the skills in at most so many characters, with how many
// more there are. s may be nil.
func (s *Skills) Names(chars int) string {
	if s == nil {
		return ""
	}
	text := ""
	for i, k := range s.list {
		more := ""
		if left := len(s.list) - i - 1; left > 0 {
			more = fmt.Sprintf(", +%d more", left)
		}
		next := text + k.Name
		if i > 0 {
			next = text + ", " + k.Name
		}
		if utf8.RuneCountInString(next+more) > chars {
			return strings.TrimPrefix(text+fmt.Sprintf(", +%d more", len(s.list)-i), ", ")
		}
		text = next
	}
	return text
}

// List shows a line per skill, with the first words of its description.
func (s *Skills) List(descWords int) (text, next string) {
	if descWords <= 0 {
		descWords = summaryWords
	}
	lines := make([]string, len(s.list))
	for i, k := range s.list {
		lines[i] = k.Name
		if k.Description != "" {
			lines[i] += ": " + words(k.Description, descWords)
		}
	}
	return strings.Join(lines, "\n"), "use read_skill with the name of the skill that fits the task, then follow it."
}

// Read is the full text of a skill. A name is a name and never a path; the
// error is a *Missing that names the nearest right one.
func (s *Skills) Read(name string) (text, next string, err error) {
	for _, k := range s.list {
		if k.Name == name {
			if text, err = readSkill(k.file); err != nil {
				return "", "", &Missing{fmt.Sprintf("skill %q cannot be read any more: %v", name, err), "go on without it, or tell the user."}
			}
			return text, "follow this skill for the task at hand.", nil
		}
	}
	return "", "", s.missing(name)
}

func (s *Skills) missing(name string) error {
	m := &Missing{text: fmt.Sprintf("there is no skill %q", name), Next: "use read_skill with one of the names above."}
	switch {
	case name == "":
		m.text = "name is missing"
	case isPath(name):
		m.text += ": a skill is read by its name, never by a path"
	}
	names := make([]string, len(s.list))
	for i, k := range s.list {
		names[i] = k.Name
	}
	if near := Nearest(name, names, 1); len(near) == 1 {
		m.text += fmt.Sprintf("; the nearest is %q", near[0])
	}
	m.text += "; skills: " + s.Names(1000) + "."
	return m
}

// frontMatter reads name and description between the --- lines a text may
// begin with: plain, quoted, or going on over indented lines.
func frontMatter(text string) (name, description string) {
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if strings.TrimSpace(lines[0]) != "---" {
		return "", ""
	}
	values, key := map[string]string{}, ""
	for _, line := range lines[1:] {
		if strings.TrimSpace(line) == "---" {
			return values["name"], values["description"]
		}
		if indented := strings.TrimLeft(line, " \t"); indented != line {
			values[key] = strings.TrimSpace(values[key] + " " + indented)
			continue
		}
		k, v, _ := strings.Cut(line, ":")
		key = strings.TrimSpace(k)
		values[key] = scalar(v)
	}
	return "", "" // it never ended: then it was none
}

// scalar is a YAML value on its own line.
func scalar(v string) string {
	v = strings.TrimSpace(v)
	switch {
	case v == "" || strings.ContainsAny(v[:1], "|>"):
		return "" // the lines that follow are the value
	case len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0]:
		return v[1 : len(v)-1]
	}
	return v
}
