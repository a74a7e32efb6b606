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

async function checked(env: Readonly<Record<string, string>>, policy = POLICY) {
  const args = ['config', 'check', '--json', '--manifest', MANIFEST, '--policy', policy];
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
