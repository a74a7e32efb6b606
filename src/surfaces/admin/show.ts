import type { ProcessView, SessionView } from '../../ask/operating/process-status.js';

export interface TextTable {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Tables available through SHOW; those that PgBouncer also has use its names. */
export const SHOWN = [
  'clients',
  'servers',
  'pools',
  'stats',
  'databases',
  'users',
  'caches',
  'audit',
  'state',
  'config',
  'version',
] as const;
export type ShownName = (typeof SHOWN)[number];

/** Version of a process and the configuration it was started with. */
export interface ProcessConfiguration {
  readonly version: string;
  /** Configuration without secrets. */
  readonly settings: readonly (readonly [name: string, value: string])[];
}

export function show(
  name: ShownName,
  views: readonly ProcessView[],
  configured: ProcessConfiguration,
): TextTable {
  switch (name) {
    case 'clients':
      return table(CLIENT, views.flatMap(({ sessions }) => sessions).map(clientRow));
    case 'servers':
      return table(
        'process database purpose state open running',
        views.flatMap(({ pools }) =>
          pools.map((p) => [p.process, p.connector, p.purpose, p.reach, p.open, p.running]),
        ),
      );
    case 'pools':
      return table(
        'process database purpose cl_active cl_waiting sv_active sv_idle sv_max reach',
        views.flatMap(({ pools }) =>
          pools.map((p) => {
            const idle = Math.max(0, p.open - p.running);
            return [
              p.process,
              p.connector,
              p.purpose,
              p.running,
              p.waiting,
              p.running,
              idle,
              p.size,
              p.reach,
            ];
          }),
        ),
      );
    case 'stats':
      return table(
        'process sessions plan_hits plan_misses fast_questions audit_records',
        views.map(({ process, sessions, caches, audit }) => {
          const plans = caches.find(({ cache }) => cache === 'plans');
          const routes = caches.find(({ cache }) => cache === 'routes');
          return [process, sessions.length, plans?.hits, plans?.misses, routes?.hits, audit.records];
        }),
      );
    case 'databases':
      return table(
        'name process max_sessions open reach',
        views.flatMap(({ pools }) =>
          pools
            .filter(({ purpose }) => purpose === 'questions')
            .map((p) => [nameOf(p), p.process, p.size, p.open, p.reach]),
        ),
      );
    case 'users':
      return table('name sessions', usersOf(views));
    case 'caches':
      return table(
        'process cache entries bytes hits misses',
        views.flatMap(({ caches }) =>
          caches.map((c) => [c.process, c.cache, c.entries, c.bytes, c.hits, c.misses]),
        ),
      );
    case 'audit':
      return table(
        'process records waiting unanchored failing',
        views.map(({ process, audit: a }) => [process, a.records, a.waiting, a.unanchored, a.failing]),
      );
    case 'state':
      return table(
        'process pid since draining manifest policy policy_kept_until policy_fault out_of_service',
        views.map((v) => [
          v.process,
          v.pid,
          v.since,
          v.draining,
          v.manifest,
          v.policy,
          v.policy_kept_until,
          v.policy_fault,
          v.out_of_service.join(', '),
        ]),
      );
    case 'config':
      return table('key value', configured.settings);
    case 'version':
      return table('version', [[`OSL Gateway ${configured.version}`]]);
    default: {
      const unknown: never = name;
      return unknown;
    }
  }
}

const CLIENT =
  'type user subject state connect_time state_since id process application_name fingerprint shape';

function clientRow(s: SessionView): readonly CellValue[] {
  return [
    s.surface,
    s.user,
    s.chain.join(' > '),
    s.state,
    s.since,
    s.state_since,
    s.id,
    s.process,
    s.application,
    s.fingerprint,
    s.shape ?? s.objects.join(', '),
  ];
}

/** The connector's name; for a standby with its own. */
function nameOf({ connector, standby }: ProcessView['pools'][number]): string {
  return standby === null ? connector : `${connector}/${standby}`;
}

function usersOf(views: readonly ProcessView[]): readonly (readonly CellValue[])[] {
  const counts = new Map<string, number>();
  for (const { sessions } of views)
    for (const { subject } of sessions) counts.set(subject ?? '', (counts.get(subject ?? '') ?? 0) + 1);
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
}

type CellValue = string | number | boolean | null | undefined;

/** Builds a table; `columns` lists the column names, separated by spaces. */
function table(columns: string, rows: readonly (readonly CellValue[])[]): TextTable {
  return { columns: columns.split(' '), rows: rows.map((row) => row.map((cell) => String(cell ?? ''))) };
}
