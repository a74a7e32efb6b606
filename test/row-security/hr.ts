import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { policyText } from '../support/model-text.js';
import type { NativePostgres } from '../support/native-postgres.js';
import { type Finished, osl } from '../tools/cli/support.js';

export const URL_ENV = 'OSL_TEST_SECOND_URL';

/** People of three regions; `ssn` is masked for everybody, `hr.vault` is granted to nobody. */
export const SCRIPT = `
create schema hr;
create table hr.employee (id int4 primary key, name text not null, region text not null, team text, salary numeric, ssn text);
create table hr.note (id int4 primary key, employee_id int4 not null, body text);
create table hr.vault (id int4 primary key, secret text);
insert into hr.employee
  select n, 'person ' || n, (array['eu', 'us', 'jp'])[1 + n % 3], (array['red', 'blue'])[1 + n % 2], n * 100, 'ssn ' || n
    from generate_series(1, 12) n;
insert into hr.note select n, n, 'note ' || n from generate_series(1, 12) n;
insert into hr.vault values (1, 'gold');
grant usage on schema hr to osl_reader;
grant select on all tables in schema hr to osl_reader;
`;

const MANIFEST = `
version: 1
tenant: hr
connectors:
  db:
    kind: postgres
    url_env: ${URL_ENV}
    row_security: true
    tables:
      hr.employee:
        columns:
          id: { type: int4 }
          name: { type: text, nullable: false }
          region: { type: text, nullable: false }
          team: { type: text }
          salary: { type: numeric }
          ssn: { type: text, pii: true }
      hr.note:
        columns:
          id: { type: int4 }
          employee_id: { type: int4, nullable: false }
          body: { type: text }
      hr.vault:
        columns:
          id: { type: int4 }
          secret: { type: text }
entities:
  employee: { source: db.hr.employee, primary_key: [id], columns: [id, name, region, team, salary, ssn] }
  note: { source: db.hr.note, primary_key: [id], entity_key_columns: [id, employee_id], columns: [id, employee_id, body] }
relationships:
  note_employee: { from: note.employee_id, to: employee.id, kind: many_to_one }
raw_sql:
  allow: [db.hr.employee]
`;

/** \`other\` shows who is not of the caller's team: what asks each subject of a chain on its own. */
export const POLICY = policyText(
  'hr',
  {
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:us': 'regional { attributes: { region: [us, jp] } }',
    'user:all': 'regional, everything { admin: [TENANT_ADMIN], attributes: { region: { any: true } } }',
    'user:none': 'regional',
    'user:red': 'other { attributes: { team: red } }',
    'agent:blue': 'other { attributes: { team: blue } }',
    'agent:bot': 'regional { attributes: { region: [eu, jp] } }',
    'user:barred': 'everything, barred',
  },
  `roles:
  regional:
    grants:
      - { on: employee, columns: "*", rows: "region = attribute('region')" }
  other:
    grants:
      - { on: employee, columns: [id, name, team], rows: "not (team = attribute('team'))" }
  everything:
    grants:
      - { on: employee, columns: [id, name, region, team] }
      - { on: note, columns: "*" }
  barred:
    grants: []
    deny: [{ on: note }]
masks: { pii: redact }
limits: { query: 100000, catalog: 100000 }
`,
);

/** A folder with the two files, and the command in it. */
export interface Project {
  readonly dir: string;
  readonly dataDir: string;
  readonly manifestFile: string;
  readonly policyFile: string;
  rowSecurity(...flags: readonly string[]): Promise<Finished>;
  doctor(): Promise<Finished>;
}

export function project(dir: string, postgres: NativePostgres): Project {
  const [manifestFile, policyFile] = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')];
  writeFileSync(manifestFile, MANIFEST);
  writeFileSync(policyFile, POLICY);
  const env = { [URL_ENV]: postgres.readerUrl };
  const run = (args: readonly string[]): Promise<Finished> =>
    osl([...args, '--data-dir', join(dir, 'data')], { cwd: dir, env });
  return {
    dir,
    dataDir: join(dir, 'data'),
    manifestFile,
    policyFile,
    rowSecurity: (...flags) => run(['row-security', ...flags]),
    doctor: () => run(['doctor', '--json', '--http-port', '0', '--pg-port', '0']),
  };
}

/** Runs statements as the owner. */
export async function asOwner(postgres: NativePostgres, sql: string): Promise<void> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
