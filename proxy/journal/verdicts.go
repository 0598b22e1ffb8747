package journal

import "log/slog"

// Verdicts remembers which protocol revision each backend command speaks.
type Verdicts struct {
	State  *State
	Logger *slog.Logger
}

const protocols = "protocols"

// Load is the remembered revision of a command.
func (v Verdicts) Load(key string) (string, bool) {
	all, _ := Get[map[string]string](v.State, protocols)
	p, ok := all[key]
	return p, ok
}

// Store remembers a revision.
func (v Verdicts) Store(key, protocol string) {
	if known, ok := v.Load(key); ok && known == protocol {
		return
	}
	v.change(func(all map[string]string) { all[key] = protocol })
}

// Drop forgets a revision that failed.
func (v Verdicts) Drop(key string) {
	if _, ok := v.Load(key); ok {
		v.change(func(all map[string]string) { delete(all, key) })
	}
}

func (v Verdicts) change(f func(map[string]string)) {
	err := Update(v.State, protocols, func(all map[string]string) map[string]string {
		if all == nil {
			all = map[string]string{}
		}
		f(all)
		return all
	})
	if err != nil {
		v.Logger.Warn("a backend's protocol revision is not remembered", "err", err)
	}
}
