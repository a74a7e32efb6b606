import type { FastifyInstance } from 'fastify';
import { queryError } from 'osl-compiler';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AnswerParts, PlanNotes, RequestParts } from '../../ask/index.js';
import { refuseCall } from '../../ask/request/calls-without-data.js';
import { BOUNDS_US, Durations, type MeterLabels, type Meters } from '../../ask/request/meters.js';
import { localOrIn } from '../../base/networks.js';
import {
  type EnginePool,
  objectsOutOfService,
  type SpoolRoom,
  type StandbyView,
  unreachableNodes,
} from '../../engine/index.js';
import { isForwarded } from '../rest/call.js';
import { METRICS_OPERATION } from '../rest/openapi/service-operations.js';
import type { HealthParts, RestParts } from '../rest/parts.js';
import { privateHeaders } from '../rest/problem.js';

export interface Telemetry {
  readonly registry: Registry;
  figures(): Promise<MetricsJson>;
}

/** Serialized metrics of one process; opaque to the code that collects them. */
export type MetricsJson = string;

/** Renders the metrics of several processes as one page, combined as each metric defines (default: summed). */
function renderMetrics(processes: readonly MetricsJson[]): Promise<string> {
  // cast: written by `figures` in another process of this program
  const lists = processes.map((text) => JSON.parse(text) as object[]);
  return AggregatorRegistry.aggregate(lists).metrics();
}

export async function metricTotals(processes: readonly MetricsJson[]): Promise<readonly MetricTotals[]> {
  const lists = processes.map((text) => JSON.parse(text) as object[]); // cast: written by `figures`
  return (await AggregatorRegistry.aggregate(lists).getMetricsAsJSON()) as readonly MetricTotals[]; // cast: its format
}

export interface MetricTotals {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    readonly metricName?: string;
  }[];
}

/** Histogram buckets in seconds; point queries fall into the smallest ones. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Creates the metrics of `app`. Requests are labelled by their declared route, so labels never contain client input.
 */
export function createTelemetry(app: FastifyInstance, service: HttpParts, wire: WireFigures): Telemetry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'osl_http_requests_total',
    help: 'HTTP requests by route, method and status',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'osl_http_request_seconds',
    help: 'Time from the request headers to the last byte of the response',
    labelNames: ['route'],
    buckets: BUCKETS,
    registers: [registry],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown';
    requests.inc({ route, method: request.method, status: reply.raw.statusCode });
    seconds.observe({ route }, reply.elapsedTime / 1_000);
    done();
  });
  requestMetrics(registry, service.observing.meters);
  serviceGauges(registry, service, wire);
  poolGauges(registry, service);
  const figures = async (): Promise<MetricsJson> => JSON.stringify(await registry.getMetricsAsJSON());
  return Object.freeze({ registry, figures });
}

/**
 * `GET /metrics`, for Prometheus on this machine and in `networks`, but not through a proxy, since its address does
 * not identify the client. Any other client gets Not Found.
 *
 * @param collectMetrics collects the metrics of all processes of the server; default: this process only
 */
export function metricsRoute(
  app: FastifyInstance,
  service: RequestParts & HealthParts,
  telemetry: Telemetry,
  networks: readonly string[],
  collectMetrics?: () => Promise<readonly MetricsJson[]>,
): void {
  const isAllowed = localOrIn(networks);
  app.get('/metrics', { schema: METRICS_OPERATION }, async (request, reply) => {
    if (isForwarded(request) || !isAllowed(request.socket.remoteAddress ?? '')) {
      throw await refuseCall(service, request.call, 'http', queryError('notFound', {}), 'anyone');
    }
    const { registry } = telemetry;
    const text =
      collectMetrics === undefined ? await registry.metrics() : await renderMetrics(await collectMetrics());
    service.probes.count('metrics', '/metrics', 200, request.call);
    return reply
      .headers({
        ...privateHeaders(request.call.requestId),
        'content-type': telemetry.registry.contentType,
      })
      .send(text);
  });
}

export interface WireFigures {
  readonly connections: number;
  readonly fastQuestions: number;
}

export const NO_WIRE: WireFigures = Object.freeze({ connections: 0, fastQuestions: 0 });

/** Adds a gauge; `aggregator` defines how its values are combined across processes (default: their sum). */
type AddGauge = (name: string, help: string, read: () => number, aggregator?: 'min' | 'max') => void;

function serviceGauges(registry: Registry, service: HttpParts, wire: WireFigures): void {
  const gauge: AddGauge = (name, help, read, aggregator) => {
    new Gauge({
      name,
      help,
      registers: [registry],
      aggregator: aggregator ?? 'sum',
      collect: function collect() {
        this.set(read());
      },
    });
  };
  const plans = service.plans;
  gauge('osl_plan_cache_hits', 'Queries whose plan was cached', () => plans.stats().hits);
  gauge('osl_plan_cache_shape_hits', 'Queries that differ from a cached one only in literals', () => {
    return plans.stats().shapeHits;
  });
  gauge('osl_plan_cache_misses', 'Queries that were compiled', () => plans.stats().misses);
  gauge('osl_plan_cache_entries', 'Cached plans', () => plans.stats().entries);
  gauge('osl_plan_cache_bytes', 'Approximate size of the cached plans', () => plans.stats().bytes);
  const { answers } = service;
  gauge('osl_result_cache_hits', 'Queries answered from the result cache', () => answers.stats().hits);
  gauge(
    'osl_result_cache_misses',
    'Cacheable queries that were run because their result was not cached',
    () => answers.stats().misses,
  );
  gauge('osl_result_cache_entries', 'Cached results', () => answers.stats().entries);
  gauge('osl_result_cache_bytes', 'Size of the cached results', () => answers.stats().bytes);
  gauge('osl_subscriptions', 'Open subscriptions', () => service.subscriptions.open);
  const audit = service.audit;
  gauge('osl_audit_records', 'Records appended to the audit log', () => audit.stats().records);
  gauge('osl_audit_durable_records', 'Records known to be on disk', () => audit.stats().durable);
  gauge('osl_audit_anchored_records', 'Records covered by a signed checkpoint', () => audit.stats().anchored);
  gauge('osl_audit_groups', 'Group commits since startup', () => audit.stats().groups);
  gauge('osl_audit_gaps', 'Times the audit log failed and recovered since startup', () => {
    return audit.stats().gaps;
  });
  const isFailing = (): number => (audit.stats().failure === null ? 0 : 1);
  gauge('osl_audit_failed', '1 while the audit log cannot be written', isFailing, 'max');
  const isLoaded = (): number => (service.model().snapshot === null ? 0 : 1);
  gauge(
    'osl_policy_loaded',
    '1 while a policy is in force; without one every request is refused',
    isLoaded,
    'min',
  );
  gauge(
    'osl_policy_kept_seconds',
    'Remaining time of the last valid policy; 0 if the newest policy is in force',
    () => Math.max(0, ((service.fallbackPolicy()?.until ?? 0) - Date.now()) / 1_000),
    'max',
  );
  gauge(
    'osl_clock_wrong',
    "1 while this machine's clock differs from that of the control database and of another gateway",
    () => (service.servicesReached().clock ? 0 : 1),
    'max',
  );
  gauge(
    'osl_objects_out_of_service',
    'Entities and bridges whose table or columns do not match the database',
    () => objectsOutOfService(service.engines),
    'max',
  );
  gauge(
    'osl_data_nodes_unreachable',
    'Servers of foreign tables that do not respond',
    () => unreachableNodes(service.engines),
    'max',
  );
  gauge(
    'osl_slow_questions',
    'Queries that took longer than OSL_SLOW_QUESTION_MS',
    () => service.observing.slow,
  );
  gauge(
    'osl_draining',
    '1 while the server drains and accepts no new sessions',
    () => (service.draining() ? 1 : 0),
    'max',
  );
  gauge('osl_wire_sessions', 'Open sessions on the Postgres port', () => wire.connections);
  gauge(
    'osl_wire_fast_questions',
    'Queries on the Postgres port that ran from the statement cache',
    () => wire.fastQuestions,
  );
  const { spool, memory } = service;
  gauge('osl_answer_memory_bytes', 'Result memory in use by running queries', () => memory.stats().held);
  gauge('osl_answer_memory_limit_bytes', 'Limit of the result memory', () => memory.stats().limit);
  gauge('osl_answer_memory_waiting', 'Large rows waiting for result memory', () => memory.stats().waiting);
  gauge('osl_answer_memory_refusals', 'Queries refused for lack of result memory since startup', () => {
    return memory.stats().refused;
  });
  if (spool !== null) {
    gauge('osl_spool_bytes', 'Disk space of spooled results', () => spool.stats().bytes);
    gauge('osl_spool_answers', 'Results spooled to disk now', () => spool.stats().answers);
    gauge('osl_spooled_answers', 'Results spooled to disk since startup', () => {
      return spool.stats().spooled;
    });
  }
  if (service.lineage !== null) lineageGauges(registry, gauge, service.lineage, service);
}

/** Adds gauges of connection pools. The label is the purpose, not the connector: connector names are tenant data. */
function poolGauges(registry: Registry, { engines }: Pick<HttpParts, 'engines'>): void {
  const pools = (): readonly EnginePool[] => [...engines.values()].flatMap((engine) => engine.pools());
  const addGauge = (name: string, help: string, read: (pool: EnginePool) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: ['purpose'],
      registers: [registry],
      collect: function collect() {
        this.reset();
        for (const pool of pools()) this.inc({ purpose: pool.purpose }, read(pool));
      },
    });
  };
  addGauge('osl_pool_size', 'Maximum number of database sessions', (pool) => pool.size);
  addGauge('osl_pool_open', 'Open database sessions', (pool) => pool.open);
  addGauge('osl_pool_running', 'Statements running on database sessions', (pool) => pool.running);
  addGauge('osl_pool_waiting', 'Queries waiting for a database session', (pool) => pool.waiting);
  addGauge(
    'osl_pool_unreachable',
    'Pools whose database cannot be reached or accepts no more sessions',
    (pool) => (pool.reach === 'open' ? 0 : 1),
  );
  standbyGauges(registry, () => [...engines.values()].flatMap((engine) => engine.standbys()));
}

/** Adds gauges of standbys, labelled by their position in the manifest, starting at 1. */
function standbyGauges(registry: Registry, standbys: () => readonly StandbyView[]): void {
  const addGauge = (name: string, help: string, read: (standby: StandbyView) => number | null): void => {
    new Gauge({
      name,
      help,
      labelNames: ['standby'],
      registers: [registry],
      collect: function collect() {
        this.reset();
        for (const [index, standby] of standbys().entries()) {
          const value = read(standby);
          if (value !== null) this.set({ standby: String(index + 1) }, value);
        }
      },
    });
  };
  addGauge('osl_standby_usable', '1 if the standby answers queries', ({ fault }) => (fault === null ? 1 : 0));
  addGauge('osl_standby_age_seconds', "Upper bound on the age of a standby's data", ({ ageMs }) =>
    ageMs === null ? null : ageMs / 1_000,
  );
}

const LINEAGE_HELP = {
  pending: 'Events waiting for delivery to an endpoint',
  dead: 'Events that an endpoint refused for good (dead letters)',
  delivered: 'Events delivered since startup',
  failed: 'Failed delivery attempts since startup',
  dropped: 'Events dropped because the outbox was full',
  disabled: '1 if the endpoint responded 410 and is disabled',
} as const;

function lineageGauges(
  registry: Registry,
  gauge: AddGauge,
  lineage: DeliveryStats,
  { audit }: HttpParts,
): void {
  for (const [figure, help] of Object.entries(LINEAGE_HELP)) {
    new Gauge({
      name: `osl_lineage_${figure}`,
      help,
      labelNames: ['endpoint'],
      registers: [registry],
      collect: function collect() {
        for (const [endpoint, stats] of Object.entries(lineage.stats()?.endpoints ?? {}))
          this.set({ endpoint }, Number(stats[figure as keyof typeof LINEAGE_HELP])); // cast: `figure` is one of its keys
      },
    });
  }
  gauge('osl_lineage_lag_records', 'Audit records whose lineage events are not in the outbox yet', () =>
    Math.max(0, audit.stats().durable - (lineage.stats()?.read ?? 0)),
  );
  gauge(
    'osl_lineage_restarts',
    'Unexpected ends of the lineage thread since startup',
    () => lineage.stats()?.restarts ?? 0,
  );
}

interface DeliveryStats {
  /** Returns null until the lineage thread has first reported. */
  stats(): {
    readonly endpoints: Readonly<Record<string, Readonly<Record<DeliveryFigure, number | boolean>>>>;
    readonly read: number;
    readonly restarts: number;
  } | null;
}

type DeliveryFigure = 'pending' | 'dead' | 'delivered' | 'failed' | 'dropped' | 'disabled';

export interface HttpParts extends RestParts, Pick<AnswerParts, 'plans'> {
  readonly lineage: (PlanNotes & DeliveryStats) | null;
  readonly spool: Pick<SpoolRoom, 'stats'> | null;
}

/**
 * Prometheus metrics of requests. Samples are built on scrape; handling a request only increments numbers, without
 * label lookups.
 */
function requestMetrics(registry: Registry, meters: Meters): void {
  new StageSeconds(registry, meters);
  new Counter({
    name: 'osl_requests_total',
    help: 'Requests by surface, form, decision and outcome (none: refused)',
    labelNames: ['surface', 'form', 'decision', 'outcome'],
    registers: [registry],
    collect: function collect() {
      this.reset();
      for (const { labels, outcomes } of meters.all)
        for (const [outcome, value] of outcomes) this.inc({ ...withoutConnector(labels), outcome }, value);
    },
  });
  new Counter({
    name: 'osl_errors_total',
    help: 'Refused and failed requests by error code',
    labelNames: ['code'],
    registers: [registry],
    collect: function collect() {
      this.reset();
      for (const [code, value] of meters.codes) this.inc({ code }, value);
    },
  });
}

const LABELS = ['stage', 'surface', 'form', 'decision'] as const;
const STAGE_SECONDS = 'osl_request_stage_seconds';
const HELP = 'Request time by stage, surface, form and decision';

class StageSeconds extends Histogram<(typeof LABELS)[number]> {
  readonly #meters: Meters;

  constructor(registry: Registry, meters: Meters) {
    super({
      name: STAGE_SECONDS,
      help: HELP,
      labelNames: LABELS,
      buckets: BOUNDS_US.map((us) => us / 1_000_000),
      registers: [registry],
    });
    this.#meters = meters;
  }

  /** Overrides a method that prom-client's types do not declare but the registry and `get` call. */
  async getForPromString() {
    const sums = new Map<string, { readonly labels: Labels; readonly durations: Durations }>();
    for (const meter of this.#meters.all)
      for (const [stage, durations] of meter.stages) {
        const labels = { stage, ...withoutConnector(meter.labels) };
        const key = Object.values(labels).join(' ');
        const sum = sums.get(key) ?? { labels, durations: new Durations() };
        sums.set(key, sum);
        sum.durations.include(durations);
      }
    const values = [...sums.values()].flatMap(({ labels, durations }) => samplesOf(durations, labels));
    return { name: STAGE_SECONDS, help: HELP, type: 'histogram', aggregator: 'sum', values };
  }
}

function withoutConnector({ surface, form, decision }: MeterLabels): Omit<MeterLabels, 'connector'> {
  return { surface, form, decision };
}

type Labels = Readonly<Record<(typeof LABELS)[number], string>>;

/**
 * Returns the samples of one histogram. The registry modifies `labels`, but not `sharedLabels`, which is common to all.
 */
function samplesOf({ counts, sumUs }: Durations, sharedLabels: Labels) {
  let cumulative = 0;
  const buckets = counts.map((count, i) => {
    cumulative += count;
    const bound = BOUNDS_US[i];
    const le = bound === undefined ? '+Inf' : bound / 1_000_000;
    return { metricName: `${STAGE_SECONDS}_bucket`, labels: { le }, sharedLabels, value: cumulative };
  });
  return [
    ...buckets,
    { metricName: `${STAGE_SECONDS}_sum`, labels: {}, sharedLabels, value: sumUs / 1_000_000 },
    { metricName: `${STAGE_SECONDS}_count`, labels: {}, sharedLabels, value: cumulative },
  ];
}
