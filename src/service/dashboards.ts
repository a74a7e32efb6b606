import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { SharedDashboard } from '../ask/request/calls-without-data.js';
import { StartProblem } from '../base/start-problem.js';
import { codeOf } from '../base/thrown.js';
import { parseSource, readManifestText, throwProblems } from '../model/manifest/index.js';
import { shapeCheck } from '../model/manifest/schema/check.js';
import { choice, closed, DRAFT, integer, some } from '../model/manifest/schema/json-schema.js';
import type { ReloadPart } from './reload/reload.js';

const TITLE = {
  type: 'string',
  pattern: '\\S',
  maxLength: 100,
  description: 'At most 100 characters.',
} as const;
const NAME = {
  type: 'string',
  pattern: '^[\\p{L}_][\\p{L}\\p{M}\\p{N}_ ]{0,199}$',
  description: 'Name of a metric or dimension.',
} as const;
const DAY = { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'A day: 2026-01-31.' } as const;

/** Names of date ranges relative to the current day. The console computes the ranges: `namedRanges`. */
const PERIODS = [
  ...['last 30 days', 'last 90 days', 'last month', 'last quarter', 'this year', 'last year'],
  'last 12 months',
] as const;

const GROUP = {
  anyOf: [
    NAME,
    closed(
      {
        name: NAME,
        grain: choice(['hour', 'day', 'week', 'month', 'quarter', 'year'], 'Length of the periods.'),
      },
      ['name', 'grain'],
      'A time and its grain.',
    ),
  ],
  description: 'A dimension, or a time as `{name, grain}`.',
} as const;

const FILTER = closed(
  {
    name: NAME,
    operator: choice(['is', 'is_not', 'empty', 'not_empty'], 'Condition on the dimension.'),
    values: {
      type: 'array',
      items: { type: ['string', 'number', 'boolean'] },
      minItems: 1,
      maxItems: 200,
      description: 'Values for `is` and `is_not`.',
    },
  },
  ['name', 'operator'],
  'A filter.',
);

const PANEL = closed(
  {
    title: TITLE,
    show: choice(['chart', 'table', 'both'], 'Default: chart.'),
    metrics: { ...some(NAME, 'Metrics of the query.'), maxItems: 50 },
    group_by: { type: 'array', items: GROUP, maxItems: 20, description: 'Dimensions to group by.' },
    filters: { type: 'array', items: FILTER, maxItems: 50, description: 'Filters, all of which must hold.' },
    period: {
      anyOf: [
        choice(PERIODS, 'A range that moves with the days.'),
        closed({ start: DAY, end: DAY }, [], 'A range of days, both inclusive.'),
      ],
      description: 'Range of days: `{start, end}`, or a word.',
    },
    compare: choice(['none', 'previous_period', 'previous_year'], 'Default: none.'),
    order_by: { type: 'string', maxLength: 201, description: 'A metric or group; `-` for descending.' },
    limit: integer(1, 100_000, 'Number of rows. Default: 100.'),
  },
  ['title', 'metrics'],
  'A metrics query with a title.',
);

const DASHBOARD_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL dashboard',
  ...closed(
    {
      osl_dashboard: choice([1], 'Version of the format.'),
      title: TITLE,
      roles: some(TITLE, 'Roles of the policy that see the dashboard in their list.'),
      // Equal panels are allowed, as in the console.
      panels: { type: 'array', items: PANEL, minItems: 1, maxItems: 30, description: 'Panels.' },
    },
    ['osl_dashboard', 'title', 'roles', 'panels'],
    'Metrics queries that are shown together.',
  ),
} as const;

const shape = shapeCheck(DASHBOARD_SCHEMA);

interface DashboardDocument {
  readonly title: string;
  readonly roles: readonly string[];
}

/** Dashboards from the folder of OSL_DASHBOARDS, read at start and on reload. */
interface DashboardFolder {
  all(): readonly SharedDashboard[];
  readonly reload: ReloadPart;
}

/** @param folder null if there are no shared dashboards @throws StartProblem, ManifestProblems */
export async function openDashboards(folder: string | null): Promise<DashboardFolder> {
  let current = await readDashboards(folder);
  return {
    all: () => current,
    reload: {
      prepare: async () => {
        const next = await readDashboards(folder);
        const summary =
          folder === null ? null : `${next.length} shared ${next.length === 1 ? 'dashboard' : 'dashboards'}`;
        return {
          now: summary,
          kept: null,
          apply: () => {
            current = next;
          },
        };
      },
    },
  };
}

async function readDashboards(folder: string | null): Promise<readonly SharedDashboard[]> {
  if (folder === null) return [];
  const files = listFolder(folder).filter((name) => /\.(?:json|ya?ml)$/.test(name));
  const dashboardsByTitle = new Map<string, SharedDashboard>();
  for (const file of files.toSorted()) {
    const path = join(folder, file);
    const source = parseSource(await readManifestText(path), path);
    throwProblems(source, shape(source.value));
    const { roles, ...content } = source.value as DashboardDocument; // checked by the schema
    if (dashboardsByTitle.has(content.title))
      throw new StartProblem(`${path}: another file has the title \`${content.title}\``);
    dashboardsByTitle.set(content.title, Object.freeze({ roles, content }));
  }
  return Object.freeze(
    [...dashboardsByTitle].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, dashboard]) => dashboard),
  );
}

function listFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw new StartProblem(`OSL_DASHBOARDS: ${folder} cannot be read (${codeOf(error) ?? 'unreadable'})`);
  }
}
