#!/usr/bin/env node
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ATTACKS, CLASSES } from './attacks/index.js';
import type { EndpointKind } from './endpoint.js';
import { DIRECTUS } from './endpoints/directus.js';
import { OSL_MCP, OSL_REST, OSL_UNORDERED, OSL_WIRE } from './endpoints/osl.js';
import { PGBOUNCER } from './endpoints/pgbouncer.js';
import {
  BARRIER_VIEWS,
  COPIES,
  MASKING_VIEWS,
  PLAIN_VIEWS,
  ROW_SECURITY,
  UNPROTECTED,
} from './endpoints/plain-postgres.js';
import { POSTGRAPHILE } from './endpoints/postgraphile.js';
import { json, markdown, page } from './report.js';
import { type EndpointRun, runEndpoints } from './run.js';

const KINDS: Readonly<Record<string, EndpointKind>> = {
  unprotected: UNPROTECTED,
  'plain-views': PLAIN_VIEWS,
  'barrier-views': BARRIER_VIEWS,
  'masking-views': MASKING_VIEWS,
  'row-security': ROW_SECURITY,
  pgbouncer: PGBOUNCER,
  postgraphile: POSTGRAPHILE,
  directus: DIRECTUS,
  'osl-wire': OSL_WIRE,
  'osl-unordered': OSL_UNORDERED,
  'osl-rest': OSL_REST,
  'osl-mcp': OSL_MCP,
  copies: COPIES,
};

/** Endpoints that need another program. */
const OTHERS = ['pgbouncer', 'postgraphile', 'directus'];

const HELP = `leakbench --url postgres://… [--on NAME,…] [--class NAME,…] [--only ID,…] [--json FILE] [--html FILE] [--leaks]

Creates databases leakbench_… at the URL, whose user may create databases and roles, and drops them again.

  --on      endpoints: ${Object.keys(KINDS).join(', ')}, or all
            (default: those that need no other program than Postgres and OSL Gateway)
  --class   classes of attacks: ${CLASSES.join(', ')} (default: all)
  --only    single attacks, such as errors-07
  --json    writes every attack, its outcome, and both answers where they differ
  --html    writes a page with charts, and each leak with both answers
  --leaks   prints each leak with its statements
  --module  a module that exports an EndpointKind as \`endpoint\`, tried besides

Commands of the endpoints that start a program: LEAKBENCH_OSL (osl), LEAKBENCH_PGBOUNCER (pgbouncer),
LEAKBENCH_POSTGRAPHILE (npx --yes postgraphile@4), LEAKBENCH_DIRECTUS (npx --yes directus).
Exit status: 0 no leak at the endpoints that protect, 1 a leak, 2 usage.
`;

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    on: { type: 'string' },
    class: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
    html: { type: 'string' },
    module: { type: 'string' },
    leaks: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const listed = (text: string | undefined): readonly string[] | null => text?.split(',') ?? null;

if (values.help || values.url === undefined) {
  process.stdout.write(HELP);
  process.exitCode = values.help ? 0 : 2;
} else {
  const [classes, only] = [listed(values.class), listed(values.only)];
  const attacks = ATTACKS.filter(
    (a) => (classes === null || classes.includes(a.class)) && (only === null || only.includes(a.id)),
  );
  const all = Object.keys(KINDS);
  const usual = all.filter((name) => !OTHERS.includes(name));
  const kinds = (values.on === 'all' ? all : (listed(values.on) ?? usual)).map((name) => {
    const kind = KINDS[name];
    if (kind === undefined) throw new Error(`there is no endpoint ${name}: ${all.join(', ')}`);
    return kind;
  });
  if (values.module !== undefined) {
    const { endpoint } = (await import(new URL(values.module, `file://${process.cwd()}/`).href)) as {
      endpoint: EndpointKind;
    };
    kinds.push(endpoint);
  }
  const runs = await runEndpoints(kinds, values.url, attacks, (run) => {
    process.stderr.write(`${run.name}: ${run.seconds.toFixed(0)} s\n`);
    if (values.leaks) process.stdout.write(leaksOf(run));
  });
  process.stdout.write(markdown(runs));
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(json(runs), null, 1)}\n`);
  if (values.html !== undefined) writeFileSync(values.html, page(runs));
  const hasLeak = runs.some(
    (run) =>
      run.name !== UNPROTECTED.name &&
      run.verdicts.some((v) => v.outcome === 'leak' && v.attack.class !== 'timing'),
  );
  if (hasLeak) process.exitCode = 1;
}

function leaksOf({ name, verdicts }: EndpointRun): string {
  const leaks = verdicts.filter((v) => v.outcome === 'leak');
  return leaks
    .map(
      ({ attack, seen }) =>
        `${name}: ${attack.id}: ${attack.steps.join('; ')}\n  a ${cut(seen?.a)}\n  b ${cut(seen?.b)}\n`,
    )
    .join('');
}

function cut(text = ''): string {
  return text.length > 300 ? `${text.slice(0, 300)} …` : text;
}
