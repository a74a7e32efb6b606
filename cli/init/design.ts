import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { ready } from 'osl-compiler';
import type { Survey, SystemEngine } from '../../src/engine/index.js';
import {
  type AdoptionCandidate,
  type CitusLayout,
  candidatesIn,
  distributionColumns,
  isExposable,
  MAX_RELATIONS,
  readCitus,
  readUpstream,
} from '../../src/model/discovery/index.js';
import { isName, nameFrom, parseManifest } from '../../src/model/manifest/index.js';
import { citusText } from '../doctor/citus.js';
import { systemFault, usage } from '../exit.js';
import { createProgress, note, type Progress, visible } from '../output.js';
import {
  columnId,
  countKey,
  type DraftedManifest,
  declaredKey,
  draftManifest,
  type ExcludedTable,
  type FoundKey,
  type RowRule,
  type Treatments,
  tableOf,
  type ViewFlows,
  viewFlows,
} from '../proposal/index.js';
import type { ConnectedDatabase } from './connect.js';
import type { InitFlags, Prompt } from './prompt.js';
import { askBi, askRowFilter, askTables, askTreatments } from './questions.js';

export interface Design {
  readonly drafted: DraftedManifest;
  readonly keyed: KeyedCandidates;
  readonly treatments: Treatments;
  readonly leftOut: readonly ExcludedTable[];
  readonly untyped: readonly string[];
  readonly hidden: readonly string[];
  readonly rows: RowRule | null;
  /** Layout of the chosen tables on Citus; null on other servers. */
  readonly citus: CitusLayout | null;
  readonly tenant: string;
  readonly role: string;
  readonly subject: string;
  readonly issuerKey: string | null;
  readonly urlEnv: string;
  readonly rowSecurity: boolean;
}

/** Asks the open questions and drafts the model. @throws Failure if no model is possible */
export async function designModel(
  { survey, source, url }: ConnectedDatabase,
  reader: string | null,
  flags: InitFlags,
  prompt: Prompt,
): Promise<Design> {
  await ready();
  const { found, flows } = await discover(survey, flags, reader !== null);
  const chosen = await askTables(found, flags, prompt);
  const treatments = await askTreatments(chosen.candidates, flows, flags, prompt);
  const isHidden = (c: AdoptionCandidate, column: string): boolean =>
    treatments.get(columnId(c, column)) === 'left out';
  const shown = chosen.candidates.map((c) => ({
    ...c,
    columns: c.columns.filter(({ name }) => !isHidden(c, name)),
  }));
  const keyed = await withKeys(shown, survey.system, flags, await createProgress());
  const role = nameOrFail(
    '--role',
    flags.role ?? (await prompt.ask('\nName of the role that may read this', 'analyst')),
  );
  const subject = await subjectOf(flags, prompt);
  const citus = await citusLayout(survey, keyed.candidates);
  if (citus !== null) prompt.say(`\n${citusText(citus)}`);
  const rows = await askRowFilter(keyed.candidates, subject, citus, flags, prompt);
  for (const warning of citusWarnings(citus, rows)) note(`warning: ${visible(warning)}`);
  const joins = (await askBi(flags, prompt)) ? 'any' : 'declared';
  const issuerKey = await issuerKeyOf(flags, prompt);
  const tenant = nameOrFail('--tenant', flags.tenant ?? tenantNameOf(url));
  const urlEnv = reader === null ? source.name : readerEnv(source.name);
  const rowSecurity = flags.rowSecurity === true;
  const drafted = draftManifest(keyed.candidates, treatments, { tenant, urlEnv, rowSecurity, joins });
  const leftOut = [...chosen.leftOut, ...drafted.leftOut];
  if (drafted.manifest.entities.size === 0) {
    const why = leftOut.slice(0, 3).map(({ table, reason }) => `${table}: ${reason}`);
    throw usage(`no table could become an entity${why.length === 0 ? '' : `: ${why.join('; ')}`}`);
  }
  const untyped = chosen.candidates.flatMap((c) =>
    c.columns.filter((x) => !isExposable(x)).map((x) => `${columnId(c, x.name)} (${x.upstream_type})`),
  );
  const hidden = chosen.candidates.flatMap((c) =>
    c.columns.filter(({ name }) => isHidden(c, name)).map(({ name }) => columnId(c, name)),
  );
  const common = { role, subject, issuerKey, rows, citus, tenant, urlEnv, rowSecurity };
  return { drafted, keyed, treatments, leftOut, untyped, hidden, ...common };
}

async function citusLayout(
  { system, report }: Survey,
  candidates: readonly AdoptionCandidate[],
): Promise<CitusLayout | null> {
  if (report.kind !== 'citus') return null;
  const chosen = new Set(candidates.map(tableOf));
  return new Map([...(await readCitus(system))].filter(([table]) => chosen.has(table)));
}

/** Warnings about a row filter that does not select shards. */
function citusWarnings(citus: CitusLayout | null, rows: RowRule | null): readonly string[] {
  if (citus === null || rows === null) return [];
  return distributionColumns(citus)
    .filter(({ column }) => column !== rows.column)
    .map(
      ({ column, tables }) =>
        `rows are filtered on ${rows.column}, but Citus distributes ${tables.join(', ')} by ${column}: each query reads every shard`,
    );
}

interface DiscoveredSchemas {
  readonly found: readonly AdoptionCandidate[];
  readonly flows: ViewFlows;
}

/**
 * Finds the candidates in the chosen schemas.
 *
 * @param all also includes unreadable tables, because a role created later may be allowed to read them
 */
async function discover(survey: Survey, flags: InitFlags, all: boolean): Promise<DiscoveredSchemas> {
  const own = flags.schemas?.find((name) => name === 'information_schema' || name.startsWith('pg_'));
  if (own !== undefined) throw usage(`\`${own}\` is a system schema: system catalogs cannot be published`);
  const upstream = await readUpstream(survey.system, flags.schemas ?? null);
  if (upstream.truncated)
    note(`warning: only the first ${MAX_RELATIONS} relations were read; --schemas narrows them`);
  const nothing = parseManifest(
    '{version: 1, connectors: {db: {kind: pglite, tables: {}}}, entities: {}}',
    'nothing',
  );
  const found = candidatesIn(upstream, 'db', nothing);
  if (found.length === 0) {
    const where = flags.schemas === undefined ? 'the database' : `schema ${flags.schemas.join(', ')}`;
    throw usage(`${where} has no tables`);
  }
  const flows = viewFlows(upstream.relations);
  if (!all) return { found, flows };
  const readable = found.map((c) => {
    return { ...c, columns: c.columns.map((column) => ({ ...column, readable: true })) };
  });
  return { found: readable, flows };
}

/**
 * Returns the name of the environment variable for the connection URL of the created role. It must differ from `name`,
 * the variable of the role that creates it.
 */
function readerEnv(name: string): string {
  return name.startsWith('OSL_') ? `${name}_READER` : `OSL_${name}`;
}

function nameOrFail(what: string, name: string): string {
  if (isName(name)) return name;
  throw usage(`${what}: \`${name}\` is not a name: letters, digits and underscores, 63 at most`);
}

async function subjectOf(flags: InitFlags, prompt: Prompt): Promise<string> {
  const fallback = `user:${userName()}`;
  const subject = flags.subject ?? (await prompt.ask('Who asks first (the `sub` of tokens)', fallback));
  if (/^[^\s\u0000-\u001f]{1,256}$/.test(subject)) return subject;
  throw usage(`\`${subject}\` is not a subject: 256 characters at most, without blanks`);
}

function userName(): string {
  try {
    return userInfo().username.replace(/\s+/g, '_') || 'me';
  } catch {
    return 'me'; // the user ID has no user name
  }
}

function tenantNameOf(url: string): string {
  return nameFrom(decodeURIComponent(new URL(url).pathname.slice(1)) || 'main');
}

async function issuerKeyOf(flags: InitFlags, prompt: Prompt): Promise<string | null> {
  if (flags.issuerKey === undefined && !prompt.assumes) {
    prompt.say('\nTokens can be signed by this gateway (`osl token`), and by an issuer of yours as well.');
  }
  const file = flags.issuerKey ?? (await prompt.ask("File with your issuer's RSA public key (PEM)", 'none'));
  if (flags.issuerKey === undefined && file === 'none') return null;
  const path = resolve(process.cwd(), file);
  try {
    const { asymmetricKeyType } = createPublicKey(readFileSync(path));
    if (asymmetricKeyType === 'rsa') return path;
  } catch (error) {
    throw usage(systemFault(error) ?? `${path} holds no public key`);
  }
  throw usage(`${path} holds no RSA key`);
}

const BUDGET_MS = 30_000;

interface KeyedCandidates {
  readonly candidates: readonly AdoptionCandidate[];
  readonly counted: ReadonlySet<string>;
  readonly keyless: readonly KeylessTable[];
}

interface KeylessTable {
  readonly table: string;
  readonly reason: string;
}

/** Determines the key of every candidate: given by a flag, declared, or found by counting. */
async function withKeys(
  candidates: readonly AdoptionCandidate[],
  system: SystemEngine,
  flags: InitFlags,
  progress: Progress,
): Promise<KeyedCandidates> {
  const named = namedKeys(candidates, flags);
  const deadline = Date.now() + BUDGET_MS;
  const keyed: AdoptionCandidate[] = [];
  const counted = new Set<string>();
  const keyless: KeylessTable[] = [];
  const unknown = candidates.filter((c) => !named.has(tableOf(c)) && declaredKey(c) === null);
  let done = 0;
  for (const candidate of candidates) {
    const table = tableOf(candidate);
    const known = named.get(table) ?? declaredKey(candidate);
    if (known !== null && known !== undefined) {
      keyed.push({ ...candidate, key: known });
      continue;
    }
    progress.step('looking for keys', ++done, unknown.length);
    const found: FoundKey =
      Date.now() > deadline ? { kind: 'none', reason: 'it has no key' } : await countKey(system, candidate);
    if (found.kind === 'none') {
      keyed.push({ ...candidate, key: [] });
      keyless.push({ table, reason: `${found.reason} (--key ${candidate.table}=column)` });
    } else {
      keyed.push({ ...candidate, key: found.columns });
      counted.add(table);
    }
  }
  progress.end();
  return { candidates: keyed, counted, keyless };
}

function namedKeys(
  candidates: readonly AdoptionCandidate[],
  flags: InitFlags,
): ReadonlyMap<string, readonly string[]> {
  return new Map(
    flags.key.map((text) => {
      const [, name, list] = /^([^=]+)=(.+)$/su.exec(text) ?? [];
      if (name === undefined || list === undefined)
        throw usage('--key takes table=column, or table=column+column');
      const tables = candidates.filter((c) => c.table === name || tableOf(c) === name);
      const [table] = tables;
      if (table === undefined) throw usage(`--key: no table is called \`${name}\``);
      if (tables.length > 1) throw usage(`--key: \`${name}\` could be ${tables.map(tableOf).join(', ')}`);
      const columns = list.split('+');
      const missing = columns.find((c) => !table.columns.some((column) => column.name === c));
      if (missing !== undefined) throw usage(`--key: \`${name}\` has no column \`${missing}\``);
      return [tableOf(table), columns] as const;
    }),
  );
}
