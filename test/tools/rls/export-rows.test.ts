import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindPredicate, ready } from 'osl-compiler';
import pg from 'pg';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { catalogOf, checkedDatabase } from '../../../cli/rls/database.js';
import { AttributeSources, type SettingsForm } from '../../../cli/rls/export/attribute-sources.js';
import { type ExportedRowSecurity, exportedRowSecurity } from '../../../cli/rls/export/design.js';
import { exportScript } from '../../../cli/rls/export/script.js';
import type { CallerAttribute, CallerSource } from '../../../cli/rls/import/caller-value.js';
import { type ImportedPolicy, importedPolicy } from '../../../cli/rls/import/draft.js';
import type { PolicyDocument } from '../../../policy/index.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import type { Manifest } from '../../../src/model/manifest/index.js';
import { rowSecurityOf, writeRowSecurity } from '../../../src/model/row-security/index.js';
import { loadModel } from '../../../src/service/model.js';
import { project, SCRIPT, URL_ENV } from '../../row-security/hr.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { type Serving, servingFiles } from './serving.js';

/*
 * Rows under exported row security and rows through a gateway: under row security there are the same, or fewer where a
 * reason is named. Conditions that are hard to write so are each a role of its own.
 */

/** Filters of `employee`; most of them would accept more without the attribute, written without care. */
const FILTERS: Readonly<Record<string, string>> = {
  plain: `region = attribute('region')`,
  other: `not (region = attribute('region'))`,
  either: `region = attribute('region') or salary > 900`,
  either_attribute: `region = attribute('region') or team = attribute('team')`,
  not_both: `not (region = attribute('region') and salary > 600)`,
  not_either: `not (region = attribute('region') or salary > 600)`,
  is_not_true: `(region = attribute('region')) is not true`,
  cases: `case when region = attribute('region') then false else salary > 300 end`,
  coalesced: `coalesce(region = attribute('region'), true)`,
  twice_not: `not (not (region = attribute('region')))`,
  present: `'' = attribute('region') or true`,
  absent: `'' = attribute('region') and false`,
  not_absent: `not ('' = attribute('region') and false)`,
  constants: `'eu' = attribute('region') or 'jp' = attribute('region')`,
  number: `id = attribute('number')`,
  quoted: `name = attribute('name')`,
  read: `id = attribute('own')`,
  not_read: `not (id = attribute('own'))`,
  read_or: `id = attribute('own') or salary > 900`,
  exists: `true = attribute('has_note')`,
  not_exists: `not (true = attribute('has_note'))`,
  read_twice: `id = attribute('below')`,
  clock: `now() > timestamptz '2020-01-01 00:00:00+00' and current_date > date '2020-01-01' and region = attribute('region')`,
};

const ATTRIBUTES = {
  own: { on: 'note', column: 'employee_id', rows: `body = attribute('body') or id = 12` },
  has_note: { on: 'note', rows: `body = attribute('body')` },
  below: { on: 'note', column: 'id', rows: `employee_id = attribute('own')` },
};

interface Caller {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | readonly string[]>>;
}

const CALLERS: readonly Caller[] = [
  { name: 'all', attributes: { region: 'eu', team: 'red', number: '3', name: `person 7`, body: 'note 5' } },
  {
    name: 'other',
    attributes: { region: 'us', team: 'blue', number: '4', name: `o'\\person`, body: 'none' },
  },
  { name: 'some', attributes: { region: 'jp' } },
  { name: 'team', attributes: { team: 'red', body: 'note 6' } },
  { name: 'nothing', attributes: {} },
];
/** Callers with lists, and nothing else. */
const LISTS: readonly Caller[] = [
  {
    name: 'two',
    attributes: {
      region: ['eu', 'jp'],
      team: ['red'],
      number: ['3', '4'],
      name: ['person 7'],
      body: ['note 5', 'note 6'],
    },
  },
  { name: 'one', attributes: { region: ['us'] } },
  { name: 'none', attributes: {} },
];

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('rows of an export', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const mark = new URL(postgres.url).pathname.slice(1).replaceAll(/\W/g, '');
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  const made = new Set<string>();
  t.teardown(async () => {
    await admin.end();
    await postgres.stop([...made].map((role) => `"${role}"`));
  });
  await admin.query(SCRIPT);
  await admin.query(`update hr.employee set name = 'o''\\person' where id = 8; update hr.employee set team = null where id = 9;
    create policy osl_gateway on hr.employee for select to osl_reader using (true);
    create policy osl_gateway on hr.note for select to osl_reader using (true);
    revoke select on hr.vault from osl_reader`);
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-export-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const { manifestFile, policyFile } = project(dir, postgres);
  writeFileSync(
    manifestFile,
    readFileSync(manifestFile, 'utf8').replace('row_security: true', 'row_security: false'),
  );
  const original = parse(readFileSync(policyFile, 'utf8'));

  /** Writes and compiles a policy. */
  const policyOf = async (policy: object) => {
    writeFileSync(policyFile, stringify({ ...original, ...policy }));
    const { manifest, snapshot } = await loadModel(manifestFile, policyFile, null);
    const [connector] = manifest.connectors.values();
    if (snapshot === null || connector === undefined) throw new Error('no model');
    return { manifest, snapshot, connector };
  };
  const serve = (): Promise<Serving> => servingFiles(dir, { [URL_ENV]: postgres.readerUrl });
  /** Runs the export of a policy in the database. */
  const written = async (
    { manifest, snapshot, connector }: Awaited<ReturnType<typeof policyOf>>,
    stated: readonly CallerAttribute[],
  ): Promise<ExportedRowSecurity> => {
    const sources = new AttributeSources(snapshot.document, stated, 'claims');
    const exported = exportedRowSecurity(connector, manifest, snapshot, sources);
    for (const role of exported.roles) made.add(role);
    await admin.query(exportScript(exported));
    return exported;
  };
  /** The values of the columns in rows that a role sees; none without a privilege, or if a value cannot be read. */
  const under = async (
    role: string,
    { attributes }: Caller,
    table: string,
    columns: string,
    form: SettingsForm,
  ) => {
    await admin.query('begin');
    try {
      const claims = form === 'claims' ? [['request.jwt.claims', JSON.stringify(attributes)]] : [];
      const settings = Object.entries(attributes).map(([name, value]) => [
        `app.${name}`,
        [value].flat().join(','),
      ]);
      for (const pair of form === 'claims' ? claims : settings)
        await admin.query('select set_config($1, $2, true)', pair);
      await admin.query(
        `set local role "${role}"; set local standard_conforming_strings = off; set local timezone = 'Pacific/Auckland'`,
      );
      const { rows } = await admin.query(`select ${columns} from ${table} order by id`);
      return rows.map((row) => JSON.stringify(row));
    } catch (error) {
      if (error instanceof pg.DatabaseError && ['42501', '22P02'].includes(error.code ?? '')) return [];
      throw error;
    } finally {
      await admin.query('rollback');
    }
  };
  const through = async (gateway: Serving, subject: string, entity: string, columns: string) => {
    const { rows, code } = await gateway.ask(subject, `select ${columns} from ${entity} order by id`);
    if (rows === null && !['E0512', 'E0514', 'E2101'].includes(code)) throw new Error(`${subject}: ${code}`);
    return (rows ?? []).map((row) => JSON.stringify(row));
  };

  const imported = async (manifest: Manifest, roles: Iterable<string>): Promise<ImportedPolicy> => {
    const survey = await surveyPostgres(postgres.url);
    const catalog = await catalogOf(survey).finally(() => survey.close());
    const database = checkedDatabase(catalog, { schemas: new Set(['hr']), roles: new Set(roles) });
    return importedPolicy({ database, manifest, tenant: 'hr' });
  };

  t.test('conditions: the rows are the same', async (t) => {
    const filters = Object.keys(FILTERS);
    const roleOf = (filter: string): string => `${filter}_${mark}`;
    const subjectOf = (filter: string, { name }: Caller): string => `user:${name}:${filter}`;
    const all = [...CALLERS, ...LISTS];
    const roles = filters.map((name) => [
      roleOf(name),
      { grants: [{ on: 'employee', columns: ['id', 'name'], rows: FILTERS[name] }] },
    ]);
    const subjects = all.flatMap((caller) =>
      filters.map((filter) => [
        subjectOf(filter, caller),
        { ceiling: [roleOf(filter)], attributes: caller.attributes },
      ]),
    );
    const policy = await policyOf({
      roles: Object.fromEntries(roles),
      subjects: Object.fromEntries(subjects),
      attributes: ATTRIBUTES,
    });
    const gateway = await serve();
    const shown = new Map<string, readonly string[]>();
    for (const caller of all)
      for (const filter of filters) {
        const subject = subjectOf(filter, caller);
        shown.set(subject, await through(gateway, subject, 'employee', 'id, name'));
      }
    await gateway.close();
    for (const filter of filters)
      t.equal(
        all.some((caller) => (shown.get(subjectOf(filter, caller)) ?? []).length > 0),
        filter !== 'absent',
        `${filter}: somebody sees a row`,
      );
    for (const [callers, list] of [
      [CALLERS, false],
      [LISTS, true],
    ] as const)
      for (const form of ['claims', 'app'] as const) {
        const exported = await written(
          policy,
          NAMES.map((name) => ({ name, source: sourceOf(name, form), list })),
        );
        t.strictSame(
          exported.left.filter(({ role }) => role !== null),
          [],
        );
        for (const filter of filters)
          for (const caller of callers)
            t.strictSame(
              await under(roleOf(filter), caller, 'hr.employee', 'id, name', form),
              shown.get(subjectOf(filter, caller)),
              `${filter} for ${caller.name}, from ${form}`,
            );
        if (list || form === 'app') continue;
        // Lists in claims that are said to be single values.
        for (const filter of filters)
          for (const caller of LISTS) {
            const rows = shown.get(subjectOf(filter, caller)) ?? [];
            const seen = await under(roleOf(filter), caller, 'hr.employee', 'id, name', form);
            t.ok(
              seen.every((row) => rows.includes(row)),
              `${filter} for ${caller.name} shows no more`,
            );
          }
        const { document, notes } = await imported(policy.manifest, filters.map(roleOf));
        const rowsIn = ({ roles: all }: PolicyDocument, filter: string): readonly (string | undefined)[] =>
          (all[roleOf(filter)]?.grants ?? []).map(({ rows }) => rows);
        const refused = notes.filter(({ kind }) => kind === 'refused').map(({ role }) => role);
        t.strictSame(
          filters.filter((filter) => refused.includes(roleOf(filter))),
          REFUSED,
          'refused by an import',
        );
        t.strictSame(
          filters.filter((filter) => {
            if (REFUSED.includes(filter)) return false;
            const [was, now] = [rowsIn(policy.snapshot.document, filter), rowsIn(document, filter)];
            return boundTo(policy.manifest, was) !== boundTo(policy.manifest, now);
          }),
          CHANGED,
          'not the same after an import',
        );
      }
  });

  t.test('roles of an example: no cell that the gateway does not show', async (t) => {
    const renamed = (name: string): string => `${name}_${mark}`;
    const roles = Object.fromEntries(
      Object.entries({ ...original.roles, ...MORE_ROLES }).map(([name, role]) => [renamed(name), role]),
    );
    const people = Object.entries<{ ceiling: string[]; attributes?: object }>({
      ...original.subjects,
      'user:blind': { ceiling: ['everything', 'blind'] },
      'user:pair': { ceiling: ['pair'], attributes: { region: 'eu' } },
    });
    const subjects = Object.fromEntries(
      people.map(([name, { ceiling, ...rest }]) => [name, { ...rest, ceiling: ceiling.map(renamed) }]),
    );
    const exported = await written(await policyOf({ roles, subjects }), [
      { name: 'region', source: sourceOf('region', 'claims'), list: true },
      { name: 'team', source: sourceOf('team', 'claims'), list: true },
    ]);
    const besides = (...names: readonly string[]): string =>
      `logins that have ${names.map(renamed).join(', ')} besides see no row: together they would see cells that the gateway hides`;
    t.strictSame(
      exported.left.filter(({ role }) => role !== null).map(({ role, reason }) => [role, reason]),
      [
        [renamed('regional'), 'ssn: masked, and here not readable'],
        [
          renamed('pair'),
          'name, salary: not of all rows that the role sees, and column privileges are for all',
        ],
        [renamed('other'), besides('regional', 'pair')],
        [renamed('everything'), besides('regional')],
        [renamed('blind'), besides('regional', 'other', 'everything')],
        [renamed('pair'), besides('regional')],
      ],
    );
    const gateway = await serve();
    const counts: Record<string, readonly number[]> = {};
    for (const [subject, { ceiling, attributes = {} }] of people) {
      const login = `login_${subject.replace(/\W/, '_')}_${mark}`;
      made.add(login);
      await admin.query(`create role "${login}"`);
      for (const role of ceiling) await admin.query(`grant "${renamed(role)}" to "${login}"`);
      const caller = { name: subject, attributes: listsOf(attributes) };
      const found: number[] = [];
      for (const [entity, columns] of Object.entries(COLUMNS)) {
        let most = 0;
        for (const column of columns) {
          const cells = await under(login, caller, `hr.${entity}`, `id, ${column}`, 'claims');
          const clear = new Set(await through(gateway, subject, entity, `id, ${column}`));
          t.strictSame(
            cells.filter((cell) => !clear.has(cell)),
            [],
            `${subject}: ${entity}.${column}`,
          );
          most = Math.max(most, cells.length);
        }
        found.push(most);
      }
      counts[subject] = found;
    }
    await gateway.close();
    t.strictSame(counts, {
      'user:eu': [4, 0],
      'user:us': [8, 0],
      'user:all': [0, 12], // with two roles whose columns differ
      'user:none': [0, 0],
      'user:red': [5, 0],
      'agent:blue': [6, 0],
      'agent:bot': [8, 0],
      'user:barred': [12, 0],
      'user:blind': [0, 12],
      'user:pair': [6, 0],
    });
    const { manifest } = await policyOf({ roles, subjects });
    const { document } = await imported(manifest, [renamed('everything')]);
    t.strictSame(
      document.roles[renamed('everything')]?.grants.map(({ on, rows }) => [on, rows]),
      [
        ['employee', undefined],
        ['note', undefined],
      ],
      'an import knows that the role has none of the others',
    );
  });

  t.test('an import knows the policies of osl row-security', async (t) => {
    const web = `web_${mark}`;
    made.add(web);
    await admin.query(`
      create role "${web}";
      do $$ declare one record; begin
        for one in select polname, polrelid::regclass as relation from pg_policy loop
          execute format('drop policy %I on %s', one.polname, one.relation); end loop; end $$;
      alter table hr.employee disable row level security;
      grant usage on schema hr to "${web}"; grant select on hr.employee, hr.note to "${web}";
      create policy own on hr.note for select to "${web}", osl_reader using (id < 5)`);
    const { manifest, snapshot, connector } = await policyOf({});
    const owner = await surveyPostgres(postgres.url);
    const design = rowSecurityOf(connector, 'osl_reader', manifest.catalog, snapshot);
    await writeRowSecurity(owner.system, design, randomBytes(32)).finally(() => owner.close());
    const { document, attributes, notes } = await imported(manifest, [web, 'osl_reader']);
    t.strictSame(
      document.roles[web]?.grants.map(({ on, rows }) => [on, rows]),
      [
        ['employee', undefined],
        ['note', '(id < 5)'],
      ],
      'other roles see what they saw without it',
    );
    t.strictSame(attributes, []);
    t.equal(document.roles['osl_reader'], undefined, 'its role depends on what a gateway sends');
    t.strictSame(
      notes.filter(({ kind }) => kind === 'refused').map(({ object, role }) => [object, role]),
      [
        ['osl_rows on hr.employee', 'osl_reader'],
        ['osl_rows on hr.note', 'osl_reader'],
      ],
    );
    t.ok(
      notes
        .filter(({ kind }) => kind === 'refused')
        .every(({ detail }) => /osl row-security/.test(detail ?? '')),
    );
  });
}

/** Filters that an import refuses as an export writes them: values of callers in expressions, and NOT over a subquery. */
const REFUSED = ['is_not_true', 'cases', 'coalesced', 'absent', 'not_read'];
/** Further ones that it writes otherwise: split into alternatives, with other names of attributes, or with `current_date` in UTC. */
const CHANGED = ['either', 'either_attribute', 'read', 'read_or', 'read_twice', 'clock'];

function boundTo(manifest: Manifest, rows: readonly (string | undefined)[]): string {
  const relation = manifest.catalog.relations.get('employee');
  if (relation === undefined) throw new Error('no entity');
  return JSON.stringify(rows.map((text) => bindPredicate(text ?? 'true', relation)));
}

const NAMES = ['region', 'team', 'number', 'name', 'body'];
const MORE_ROLES = {
  blind: { grants: [], deny: [{ on: 'employee', columns: ['team'] }] },
  pair: {
    grants: [
      { on: 'employee', columns: ['id', 'name'], rows: `region = attribute('region')` },
      { on: 'employee', columns: ['id', 'salary'], rows: 'id < 3' },
    ],
  },
};
const COLUMNS = {
  employee: ['id as key', 'name', 'region', 'team', 'salary', 'ssn'],
  note: ['employee_id', 'body'],
};

/** Attributes as claims that are lists; one that matches anything is left out. */
function listsOf(attributes: object): Caller['attributes'] {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) =>
      typeof value === 'object' && !Array.isArray(value) ? [] : [[name, [value].flat()]],
    ),
  );
}

function sourceOf(name: string, form: SettingsForm): CallerSource {
  return form === 'claims' ? { kind: 'claim', path: [name] } : { kind: 'setting', name: `app.${name}` };
}
