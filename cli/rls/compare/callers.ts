import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Column, Relation, TypeName } from 'osl-compiler';
import { parse, stringify, YAMLError } from 'yaml';
import { comparedColumns, type PolicySnapshot } from '../../../policy/index.js';
import { sql, sqlName, sqlTable } from '../../../src/base/sql.js';
import type { SystemEngine, UpstreamFailure } from '../../../src/engine/index.js';
import { type Manifest, nameFrom } from '../../../src/model/manifest/index.js';
import { openService } from '../../../src/service/open.js';
import type { Service } from '../../../src/service/service.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { systemFault, usage } from '../../exit.js';
import { openIssuer } from '../../issuer.js';
import { operatorLog } from '../../log.js';
import { type CheckedDatabase, listed } from '../database.js';
import type { CallerAttribute } from '../import/caller-value.js';

/** A caller from the database's point of view: the role and the settings of its session. */
export interface ComparedCaller {
  readonly name: string;
  /** The database role. */
  readonly role: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Token claims, which the database gets in `request.jwt.claims`. */
  readonly claims: Readonly<Record<string, unknown>>;
}

const FORM = 'a list of callers, each with `role`, and `settings` and `claims` as mappings';

/** Reads callers from a YAML file. @throws Failure also for a role that the policy does not have */
function callersIn(file: string, { roles }: PolicySnapshot): readonly ComparedCaller[] {
  const found = read(file);
  if (!Array.isArray(found) || found.length === 0) throw usage(`${file} must be ${FORM}`);
  const callers = found.map((entry: unknown, i) => callerOf(entry, i, file));
  const other = callers.find(({ role }) => !roles.has(nameFrom(role)));
  if (other !== undefined)
    throw usage(`${file}: the policy has no role ${other.role}; it has ${listed([...roles.keys()])}`);
  return callers;
}

function read(file: string): unknown {
  try {
    return parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof YAMLError) throw usage(`${file}: ${error.message}`);
    throw usage(systemFault(error) ?? `${file} cannot be read`);
  }
}

function callerOf(entry: unknown, index: number, file: string): ComparedCaller {
  const { name = `caller ${index + 1}`, role, settings = {}, claims = {}, ...rest } = mapping(entry, file);
  const [unknown] = Object.keys(rest);
  if (typeof role !== 'string' || typeof name !== 'string' || unknown !== undefined)
    throw usage(`${file} must be ${FORM}`);
  const texts = Object.entries(mapping(settings, file)).map(([key, value]) => [key, String(value)] as const);
  return { name, role, settings: Object.fromEntries(texts), claims: mapping(claims, file) };
}

function mapping(value: unknown, file: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usage(`${file} must be ${FORM}`);
  return { ...value };
}

/** Session settings, including the claims in the form in which PostgREST and hosted services pass them. */
export function sessionSettings({ settings, claims }: ComparedCaller): ReadonlyMap<string, string> {
  const all = new Map(Object.entries(settings));
  if (Object.keys(claims).length === 0) return all;
  all.set('request.jwt.claims', JSON.stringify(claims));
  for (const [name, value] of Object.entries(claims))
    all.set(`request.jwt.claim.${name}`, typeof value === 'string' ? value : JSON.stringify(value));
  return all;
}

/** The caller's attributes in the policy. Attributes for which the caller has no value are omitted. */
export function attributesOfCaller(
  caller: ComparedCaller,
  attributes: readonly CallerAttribute[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.flatMap(({ name, source, list }) => {
      const value = callerValue(caller, source);
      if (value === undefined || value === null || value === '') return [];
      return [[name, list && typeof value === 'string' ? value.replace(/^\{|\}$/g, '').split(',') : value]];
    }),
  );
}

function callerValue(caller: ComparedCaller, source: CallerAttribute['source']): unknown {
  switch (source.kind) {
    case 'setting':
      return caller.settings[source.name];
    case 'claim':
      return source.path.reduce<unknown>(
        (at, key) =>
          typeof at === 'object' && at !== null ? new Map(Object.entries(at)).get(key) : undefined,
        caller.claims,
      );
    case 'database user':
      return caller.role;
  }
}

/** Callers to compare: those in the file named by the flags, otherwise sampled ones. */
export async function comparedCallers(
  system: SystemEngine,
  model: { readonly manifest: Manifest; readonly snapshot: PolicySnapshot },
  attributes: readonly CallerAttribute[],
  roles: readonly string[],
  { callers, sample }: { readonly callers?: string; readonly sample: number },
): Promise<readonly ComparedCaller[]> {
  if (callers !== undefined) return callersIn(callers, model.snapshot);
  try {
    return await sampledCallers(system, model, attributes, roles, sample);
  } catch (error) {
    if (!isUpstream(error)) throw error;
    throw usage(
      `the database gives no values to make callers of: ${error.message} (${error.sqlstate}); give --url a login ` +
        'that sees all rows of the tables, or give callers in a file (--callers)',
    );
  }
}

export function isUpstream(error: unknown): error is UpstreamFailure {
  return error instanceof Error && 'sqlstate' in error;
}

/** Names of the checked roles that exist in the policy. */
export function rolesOfPolicy({ roles }: CheckedDatabase, snapshot: PolicySnapshot): readonly string[] {
  return roles.map(({ name }) => name).filter((name) => snapshot.roles.has(nameFrom(name)));
}

/** Returns the policy subject for a caller: its role and attributes. */
export function subjectOf(caller: ComparedCaller, attributes: readonly CallerAttribute[]) {
  return { ceiling: [nameFrom(caller.role)], attributes: attributesOfCaller(caller, attributes) };
}

const WITHOUT = 'without values';
const OF_NO_ROW = 'with values of no row';

/** False for the sampled callers who see only the rows that everybody sees. */
export function mayHaveRows({ name }: ComparedCaller): boolean {
  return !name.endsWith(` ${WITHOUT}`) && !name.endsWith(` ${OF_NO_ROW}`);
}

/**
 * Makes callers of each role: one without attribute values, one with values that no row has, like a stranger's, and
 * others with values from the columns that filters compare with the attribute.
 *
 * @param each number of callers with values of rows for each role
 */
async function sampledCallers(
  system: SystemEngine,
  { manifest, snapshot }: { readonly manifest: Manifest; readonly snapshot: PolicySnapshot },
  attributes: readonly CallerAttribute[],
  roles: readonly string[],
  each: number,
): Promise<readonly ComparedCaller[]> {
  const compared = comparedColumns(snapshot);
  const samples = new Map<string, readonly string[]>();
  const ofNoRow = new Map<string, readonly string[]>();
  for (const { name } of attributes) {
    const columns = (compared.get(name) ?? []).flatMap(({ relation, column }): readonly SampledColumn[] => {
      const table = manifest.catalog.relations.get(relation);
      const found = table?.columns.find((c) => c.physical === column || c.name === column);
      return table === undefined || found === undefined ? [] : [{ table, column: found }];
    });
    samples.set(name, await valuesOf(system, columns, each));
    const value = await valueOfNoRow(system, columns);
    if (value !== null) ofNoRow.set(name, [value]);
  }
  return roles.flatMap((role) => [
    { name: `${role} ${WITHOUT}`, role, settings: {}, claims: {} },
    ...(ofNoRow.size === 0 ? [] : [callerWith(`${role} ${OF_NO_ROW}`, role, 0, attributes, ofNoRow)]),
    ...Array.from({ length: each }, (_, i) => callerWith(`${role} ${i + 1}`, role, i, attributes, samples)),
  ]);
}

interface SampledColumn {
  readonly table: Relation;
  readonly column: Column;
}

async function valuesOf(
  system: SystemEngine,
  columns: readonly SampledColumn[],
  most: number,
): Promise<readonly string[]> {
  const values = new Set<string>();
  for (const { table, column } of columns) {
    const name = sqlName(column.physical);
    const rows = await system.query(
      sql`select distinct ${name}::text as value from ${sqlTable(table)} where ${name} is not null order by 1 limit $1`,
      [most],
    );
    for (const row of rows) values.add(String(row['value']));
  }
  return [...values];
}

/** Largest values of the types of whole numbers. */
const MOST: ReadonlyMap<TypeName, bigint> = new Map([
  ['int2', 2n ** 15n - 1n],
  ['int4', 2n ** 31n - 1n],
  ['int8', 2n ** 63n - 1n],
]);

/** Returns a value that none of the columns has; null if finding one is not simple for their types. */
async function valueOfNoRow(system: SystemEngine, columns: readonly SampledColumn[]): Promise<string | null> {
  if (columns.length === 0) return null;
  const isText = ({ column: { type, stored, labels } }: SampledColumn): boolean =>
    type === 'uuid' || (type === 'text' && stored === undefined && labels === undefined);
  if (columns.every(isText)) return randomUUID();
  let next = 0n;
  for (const { table, column } of columns) {
    const most = MOST.get(column.type);
    if (most === undefined) return null;
    const [row] = await system.query(
      sql`select coalesce(max(${sqlName(column.physical)}), 0)::text as value from ${sqlTable(table)}`,
    );
    const value = BigInt(String(row?.['value'])) + 1n;
    if (value > next) next = value;
  }
  return columns.every(({ column }) => next <= (MOST.get(column.type) ?? 0n)) ? String(next) : null;
}

function callerWith(
  name: string,
  role: string,
  index: number,
  attributes: readonly CallerAttribute[],
  samples: ReadonlyMap<string, readonly string[]>,
): ComparedCaller {
  const settings: Record<string, string> = {};
  const claims: Record<string, unknown> = {};
  for (const { name: attribute, source, list } of attributes) {
    const values = samples.get(attribute) ?? [];
    const value = values[index % Math.max(1, values.length)];
    if (value === undefined) continue;
    if (source.kind === 'setting') settings[source.name] = value;
    else if (source.kind === 'claim') place(claims, source.path, list ? [value] : value);
  }
  return { name, role, settings, claims };
}

function place(claims: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) {
    claims[first] = value;
    return;
  }
  const inner: Record<string, unknown> = { ...Object(claims[first] ?? {}) };
  place(inner, rest, value);
  claims[first] = inner;
}

/** Files of an import to serve, with the callers as subjects in place of those of the policy. */
export interface ServedFiles {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Subjects that replace those of the policy, each with `ceiling` and `attributes`. */
  readonly subjects: readonly object[];
  /** Maximum number of rows in an answer. */
  readonly maxRows: number;
  /** Top-level members that replace those of the manifest. */
  readonly manifest?: Readonly<Record<string, unknown>>;
}

export interface OpenedFiles {
  readonly service: Service;
  /** Mints a token for the subject with this index. */
  token(subject: number): Promise<string>;
}

/** Runs `work` with a service on the files in this process, then closes it and deletes what it wrote. */
export async function withServedFiles(
  files: ServedFiles,
  work: (opened: OpenedFiles) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-'));
  try {
    const nameOf = (i: number): string => `caller:${i + 1}`;
    const subjects = Object.fromEntries(files.subjects.map((subject, i) => [nameOf(i), subject]));
    const policyFile = join(dir, 'policy.yaml');
    writeWith(files.policyFile, policyFile, { subjects, limits: { query: 1_000_000 } });
    const manifestFile = files.manifest === undefined ? files.manifestFile : join(dir, 'manifest.yaml');
    if (files.manifest !== undefined) writeWith(files.manifestFile, manifestFile, files.manifest);
    // Other settings of this process do not apply; only the connectors' URLs come from its environment.
    const settings = settingsFrom({ OSL_MAX_ROWS: `${files.maxRows}` }, dir, {
      manifestFile,
      policyFile,
      dataDir: join(dir, 'data'),
    });
    const open = await openService(settings, operatorLog());
    try {
      const issuer = await openIssuer(settings, policyFile);
      await work({
        service: open.service,
        token: async (i) => (await issuer.mint({ subject: nameOf(i) })).token,
      });
    } finally {
      await open.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function writeWith(from: string, to: string, members: Readonly<Record<string, unknown>>): void {
  const document: unknown = parse(readFileSync(from, 'utf8'));
  writeFileSync(to, stringify({ ...Object(document), ...members }));
}
