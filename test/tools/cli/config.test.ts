import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { EXAMPLE, osl, temporary } from './support.js';

/** `osl config check`: what a start would find, without one. */

const MANIFEST = join(EXAMPLE, 'manifest.yaml');
const POLICY = join(EXAMPLE, 'policy.yaml');

interface Told {
  readonly ok: boolean;
  readonly findings: readonly Record<'about' | 'state' | 'message' | 'hint', string | null>[];
}

async function checked(env: Readonly<Record<string, string>>, policy = POLICY, manifest = MANIFEST) {
  const args = ['config', 'check', '--json', '--manifest', manifest, '--policy', policy];
  const ports = { OSL_HTTP_PORT: '0', OSL_PG_PORT: '0', OSL_DATA_DIR: join(temporary(), 'data') };
  const { code, stdout } = await osl(args, { env: { ...ports, ...env } });
  return { code, told: JSON.parse(stdout) as Told };
}

t.test('what can be served is well, and nothing is made', async (t) => {
  const { code, told } = await checked({});
  t.equal(code, 0);
  t.equal(told.ok, true);
  for (const about of ['settings', 'files', 'data directory', 'ports', 'TLS', 'issuers'])
    t.ok(
      told.findings.some((f) => f.about === about && f.state === 'ok'),
      about,
    );
});

t.test(
  'a setting, a policy or a certificate with a fault fails; what nothing reads or answers is a warning',
  async (t) => {
    const faults = async (env: Readonly<Record<string, string>>, policy?: string) => {
      const { code, told } = await checked(env, policy);
      return { code, found: told.findings.filter(({ state }) => state === 'fail' || state === 'warn') };
    };
    t.match(await faults({ OSL_POOL_SIZE: 'many' }), {
      code: 1,
      found: [{ about: 'settings', state: 'fail', message: /OSL_POOL_SIZE must be a whole number/ }],
    });
    t.match(await faults({ OSL_POOL_SIZE: 'many', OSL_LOG_LEVEL: 'loud' }), {
      code: 1,
      found: [{ message: /^OSL_POOL_SIZE must/ }, { message: /^OSL_LOG_LEVEL must be error, warn or info/ }],
    });
    t.match(await faults({ OSL_POOL_SIZ: '3' }), {
      code: 0,
      found: [
        {
          about: 'settings',
          state: 'warn',
          message: 'unknown setting OSL_POOL_SIZ: it has no effect',
          hint: 'perhaps you meant OSL_POOL_SIZE',
        },
      ],
    });
    const refusedByStart = {
      OSL_EXCHANGE_KEY: '/nope',
      OSL_LINEAGE: '/nope',
      OSL_LOG_LEVEL_FILE: '/nope',
      OSL_AUDIT_WITNESS: 'ftp://h',
      OSL_WORKERS: '2',
    };
    t.match(await faults(refusedByStart), {
      code: 1,
      found: [
        { about: 'workers', message: /connector `demo` is an embedded database/ },
        { about: 'log', message: 'OSL_LOG_LEVEL_FILE: /nope: it does not exist' },
        { about: 'exchange', message: /\/nope cannot be read/ },
        { about: 'lineage', message: /\/nope.* it does not exist/ },
        { about: 'witnesses', message: /^OSL_AUDIT_WITNESS must name directories/ },
      ],
    });
    t.match(await faults({ OSL_HTTP_PORT: '31', OSL_ADMIN_PORT: '31' }), {
      code: 1,
      found: [{ about: 'ports', state: 'fail', message: /port 31 is named twice/ }],
    });
    t.match(
      await faults({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
        OTEL_EXPORTER_OTLP_HEADERS: 'a=%zz',
      }),
      { code: 1, found: [{ about: 'settings', state: 'fail', message: /^OTEL_EXPORTER_OTLP_HEADERS: / }] },
    );
    t.match(await faults({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }), {
      code: 0,
      found: [{ about: 'collector', state: 'warn', message: /^http:\/\/127\.0\.0\.1:1 does not answer/ }],
    });
    const away = 'postgres://u:hidden@127.0.0.1:1/d';
    for (const [variable, more] of [
      ['OSL_CONTROL_URL', {}],
      ['OSL_LIMITS_URL', {}],
      ['OSL_AUDIT_URL', { OSL_AUDIT_SINK: 'postgres' }],
    ] as const)
      t.match(await faults({ [variable]: away, ...more }), {
        code: 1,
        found: [{ about: variable, state: 'fail', message: 'nothing listens there' }],
      });
    for (const [archive, days, message] of [
      ['/nope', '400', /OSL_AUDIT_ARCHIVE: \/nope cannot be written to \(ENOENT\)/],
      [MANIFEST, '400', /manifest\.yaml is not a directory/],
      [temporary(), '0', /has no effect: all records are kept, for OSL_AUDIT_RETENTION_DAYS is 0/],
    ] as const)
      t.match(await faults({ OSL_AUDIT_ARCHIVE: archive, OSL_AUDIT_RETENTION_DAYS: days }), {
        code: 1,
        found: [{ about: 'audit archive', state: 'fail', message }],
      });
    const policy = join(temporary(), 'policy.yaml');
    writeFileSync(policy, 'version: 1\nroles: nonsense\n');
    t.match(await faults({}, policy), { code: 1, found: [{ about: 'files', state: 'fail' }] });
    t.match(await faults({ OSL_TLS_CERT: MANIFEST, OSL_TLS_KEY: MANIFEST }), {
      code: 1,
      found: [{ about: 'TLS', state: 'fail' }],
    });
  },
);

t.test('the variables of a connector and its standbys are known, and its pool size is checked', async (t) => {
  const folder = temporary();
  const manifest = join(folder, 'manifest.yaml');
  writeFileSync(
    manifest,
    `version: 1
tenant: t
connectors:
  db: { kind: postgres, url_env: OSL_DB_URL, standbys: { url_envs: [OSL_STANDBY_1_URL] }, tables: {} }
entities: {}
`,
  );
  const policy = join(folder, 'policy.yaml');
  writeFileSync(policy, 'version: 1\ntenant: t\nsubjects: {}\nroles: {}\nmasks: {}\n');
  const away = 'postgres://u@127.0.0.1:1/d';
  const env = { OSL_DB_URL: away, OSL_STANDBY_1_URL: away, OSL_DB_URL_POOL_SIZE: 'many' };
  const { told } = await checked(env, policy, manifest);
  t.match(
    told.findings.find(({ about }) => about === 'pools'),
    { state: 'fail', message: /^OSL_DB_URL_POOL_SIZE must be a whole number/ },
  );
  const isUnknown = ({ message }: Told['findings'][number]) => message?.startsWith('unknown setting');
  t.notOk(told.findings.some(isUnknown));
  const withoutManifest = await checked(
    { OSL_MY_DB: away, OSL_POOL_SIZ: '3' },
    policy,
    join(folder, 'none.yaml'),
  );
  t.match(withoutManifest.told.findings.filter(isUnknown), [
    { message: 'unknown setting OSL_POOL_SIZ, unless the manifest names it' },
  ]);
});

t.test('settings are listed with their values, secrets without', async (t) => {
  const env = {
    OSL_HTTP_PORT: '9000',
    OSL_CONTROL_URL: 'postgres://u:hidden@h/d',
    OSL_AUDIT_WITNESS: '/mnt/witness,postgres://u:hidden@h/w',
  };
  const named = await osl(['config', 'list', 'OSL_HTTP_PORT', 'OSL_PG_PORT'], { env });
  t.match(named.stdout, /OSL_HTTP_PORT = 9000\n.*\n.*0 to 65535\n\n {2}OSL_PG_PORT = 15432 \(default\)/);
  const all = await osl(['config', 'list', '--json'], { env });
  t.notMatch(all.stdout, 'hidden@');
  const { settings } = JSON.parse(all.stdout) as {
    settings: readonly { name: string; value: string | null }[];
  };
  t.ok(settings.length > 100);
  t.strictSame(
    settings.filter(({ value }) => value !== null).map(({ name }) => name),
    ['OSL_HTTP_PORT', 'OSL_AUDIT_WITNESS', 'OSL_CONTROL_URL'],
  );
  t.match(await osl(['config', 'list', 'OSL_HTTP_PROT']), {
    code: 2,
    stderr: /no setting OSL_HTTP_PROT: perhaps you meant OSL_HTTP_PORT/,
  });
});
