package witness

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"toolguardian/witness/api"
)

// metrics are a server's own: nothing is registered globally.
type metrics struct {
	registry *prometheus.Registry
	appends  *prometheus.CounterVec // by HTTP status of the answer
	latency  prometheus.Histogram
	batches  prometheus.Histogram
	commits  prometheus.Histogram
}

const namespace = "toolguardian_witness"

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		appends: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "appends_total",
			Help: "Heads judged, by the HTTP status of the answer."}, []string{"status"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "append_seconds",
			Help: "From a head's arrival to its durable answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "batch_requests",
			Help: "Requests in one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 13)}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "commit_seconds",
			Help: "One commit, from building the batch to the disk.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}),
	}
	m.registry.MustRegister(m.appends, m.latency, m.batches, m.commits)
	return m
}

func (m *metrics) appended(err error, took time.Duration) {
	status := http.StatusOK
	if err != nil {
		status = api.Status(err)
	}
	m.appends.WithLabelValues(strconv.Itoa(status)).Inc()
	if err == nil {
		m.latency.Observe(took.Seconds())
	}
}

func (m *metrics) committed(requests int, took time.Duration) {
	m.batches.Observe(float64(requests))
	m.commits.Observe(took.Seconds())
}

// handler serves what is counted and what is read at the moment of asking.
func (s *Server) metricsHandler() http.Handler {
	all := prometheus.Gatherers{s.metrics.registry}
	now := prometheus.NewRegistry()
	now.MustRegister(gauges{s})
	return promhttp.HandlerFor(append(all, now), promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

// gauges reads one snapshot of the log for each scrape.
type gauges struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

// Describe says that what is collected varies with the chains.
func (gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := g.s
	gauge(desc("queue_requests", "Requests that wait for the sequencer."), float64(len(s.seq.queue)))
	gauge(desc("ready", "1 when a head sent now could be cosigned."), truth(s.Ready() == nil))
	if a := s.audit.last(); a != nil {
		gauge(desc("audit_faults", "What the last walk over the whole store found."), float64(a.Faults))
		gauge(desc("audit_timestamp_seconds", "When the last walk ended."), float64(a.At.Unix()))
	}
	now := s.o.Now()
	err := s.read(func(p published) error {
		gauge(desc("log_entries", "Size of the log."), float64(p.size))
		st, err := s.timeStatus(p)
		if err != nil {
			return err
		}
		gauge(desc("unstamped_entries", "Leaves that wait for a timestamp."), float64(st.Unstamped))
		gauge(desc("timestamp_operators", "Distinct operators that stamped the newest stamped checkpoint."), float64(st.Operators))
		if !st.At.IsZero() {
			gauge(desc("timestamp_age_seconds", "Age of the newest timestamp."), now.Sub(st.At).Seconds())
		}
		return scanAgents(p, func(rec *originRecord) {
			if rec.Head == nil {
				return
			}
			state := string(api.StateOpen)
			if rec.Event != nil {
				state = string(rec.Event.State)
			}
			gauge(desc("chain_lag_seconds", "Time since a chain's newest cosigned head.", "origin", "state"),
				now.Sub(time.Unix(rec.Head.Time, 0)).Seconds(), rec.Origin, state)
			gauge(desc("chain_size", "Receipts under a chain's newest cosigned head.", "origin"), float64(rec.Head.Size), rec.Origin)
		})
	})
	if err != nil {
		out <- prometheus.NewInvalidMetric(desc("log_entries", "Size of the log."), err)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
