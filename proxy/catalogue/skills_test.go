package catalogue

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// skillFiles writes files below a new folder, by path.
func skillFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "ski[l]ls*")
	for path, text := range files {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const releaseSkill = "---\nname: release\ndescription: >\n  Cut a release, tag it\n  and write the notes\nlicense: x\n---\n# Steps\n"

func TestSkills(t *testing.T) {
	root := skillFiles(t, map[string]string{
		"SKILL.md": "too high", "a/SKILL.md": releaseSkill, "b/c/SKILL.md": "no front matter", "b/c/d/SKILL.md": "too deep",
		"quoted/SKILL.md":  "\ufeff---\r\nname: 'Quoted Name'\r\ndescription: \"say: it\"\r\n---\r\n",
		"escape/SKILL.md":  "---\nname: ../../etc/passwd\ndescription: bad name\n---\n",
		"twice/SKILL.md":   "---\nname: release\n---\n",
		"endless/SKILL.md": "---\nname: never\n",
		"huge/SKILL.md":    strings.Repeat("x", maxSkill+1),
		"a/other.md":       "not a skill",
	})
	s := FindSkills([]string{root, filepath.Join(root, "none")})
	text, next := s.List(0)
	want := "release: Cut a release, tag it and write the notes\nc\nendless\nescape: bad name\nQuoted Name: say: it"
	if text != want || next == "" {
		t.Errorf("listed\n%s\nwant\n%s", text, want)
	}
	if notes := strings.Join(s.Notes(), "\n"); len(s.Notes()) != 3 || !strings.Contains(notes, `"release" is there already`) ||
		!strings.Contains(notes, "larger than") || !strings.Contains(notes, "none") {
		t.Errorf("notes:\n%s", notes)
	}
	if got, _, err := s.Read("release"); err != nil || got != releaseSkill {
		t.Errorf("read %q, %v", got, err)
	}
	for name, want := range map[string]string{"realease": `nearest is "release"`, "": "name is missing", "../escape": "never by a path",
		`a\SKILL.md`: "never by a path", "a/SKILL.md": "never by a path", "..": "never by a path"} {
		_, _, err := s.Read(name)
		var missing *Missing
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) || missing.Next == "" {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if err := os.Remove(filepath.Join(root, "a", "SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read("release"); err == nil || !strings.Contains(err.Error(), "cannot be read any more") {
		t.Errorf("a removed skill: %v", err)
	}
}

func TestSkillNamesFit(t *testing.T) {
	s := &Skills{}
	for range 40 {
		s.list = append(s.list, Skill{Name: "skill-number"})
	}
	for _, chars := range []int{8, 20, 40, 300, 10000} {
		if got := s.Names(chars); len(got) > chars {
			t.Errorf("%d characters: %d", chars, len(got))
		}
	}
	if got := s.Names(30); got != "skill-number, +39 more" {
		t.Errorf("named %q", got)
	}
	if s.list = s.list[:2]; s.Names(26) != "skill-number, skill-number" {
		t.Errorf("named %q", s.Names(26))
	}
	if (*Skills)(nil).Names(10) != "" || len((*Skills)(nil).All()) != 0 {
		t.Error("no skills have names")
	}
}

func FuzzFrontMatter(f *testing.F) {
	f.Add(releaseSkill)
	f.Add("---\n  x: y\n---")
	f.Add("---\n: \n\"\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		name, description := frontMatter(text)
		if !strings.HasPrefix(strings.TrimPrefix(text, "\ufeff"), "---") && strings.TrimSpace(strings.SplitN(text, "\n", 2)[0]) != "---" && name+description != "" {
			t.Fatalf("%q has a name %q", text, name)
		}
	})
}
