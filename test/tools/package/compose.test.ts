import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import t from 'tap';
import { parse } from 'yaml';
import { ROOT, temporary } from '../cli/support.js';
import { imageDeployment } from './as-deployed.js';
import { CONTAINED_PATH, cannotContain, containing } from './contained.js';

/**
 * compose.yaml without Docker: its scripts, its services in their order with their commands, environments and volumes,
 * each in a container made by hand, on a network of their own whose names are those of the file. Not run: the images of
 * others (Postgres and HAProxy are this machine's), and Dex.
 */
const run = promisify(execFile);

interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
}; // our own file
const IMAGE = imageDeployment();
const ADDRESSES: Readonly<Record<string, string>> = {
  postgres: '127.0.1.1',
  gateway1: '127.0.1.2',
  gateway2: '127.0.1.3',
  balancer: '127.0.1.4',
  oidc: '127.0.1.5',
};

const version = (command: string): Promise<boolean> =>
  run('sh', ['-c', `command -v ${command}`]).then(
    () => true,
    () => false,
  );
const [postgresBin] = (
  await run('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1'])
).stdout
  .trim()
  .split('\n');
const lacking =
  (postgresBin ?? '') === '' || !(await version('haproxy')) || !(await version('openssl'))
    ? 'it takes HAProxy, openssl and a Postgres'
    : false;

const running = new Map<ChildProcess, NodeJS.Signals>();

/** What a command was told and said. */
interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The network that the services share, and the folders that are their volumes. */
class World {
  readonly place = temporary();
  readonly secrets = join(this.place, 'secrets');
  readonly hosts = join(this.place, 'hosts');
  #network = 0;

  async begin(): Promise<void> {
    chmodSync(this.place, 0o755);
    mkdirSync(this.secrets);
    const names = Object.entries(ADDRESSES).map(([name, address]) => `${address} ${name}\n`);
    writeFileSync(this.hosts, `127.0.0.1 localhost\n${names.join('')}`);
    await run('sh', [join(ROOT, 'deploy', 'compose', 'prepare.sh'), this.secrets]);
    const holder = this.start(
      'unshare',
      ['--net', 'sh', '-c', 'ip link set lo up && echo up && exec sleep 600'],
      {},
    );
    await once(holder.stdout ?? holder, 'data');
    this.#network = holder.pid ?? 0;
  }

  /** @param signal ends it, and what it started */
  start(
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    signal: NodeJS.Signals = 'SIGKILL',
  ): ChildProcess {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.set(child, signal);
    for (const stream of [child.stdout, child.stderr]) stream?.resume();
    return child;
  }

  /** A command line for something in the network. */
  inside(...words: readonly string[]): readonly [string, readonly string[]] {
    return ['nsenter', [`--net=/proc/${this.#network}/ns/net`, ...words]];
  }

  /** The same with the names of the services, of this machine's programs. */
  named(...words: readonly string[]): readonly [string, readonly string[]] {
    const script = 'mount --make-rprivate / && mount --bind "$0" /etc/hosts && exec "$@"';
    return this.inside('unshare', '--mount', 'sh', '-c', script, this.hosts, ...words);
  }

  /** A service of the gateway's image: the words of its command, and what its volumes are here. */
  service(name: string, volume: string, words: readonly string[]): readonly [string, readonly string[]] {
    const state = join(this.place, name);
    mkdirSync(state, { recursive: true });
    chownSync(state, 1000, 1000);
    const within = containing({
      readOnly: {
        '/opt/osl': join(this.place, 'app'),
        '/opt/osl/node_modules/osl-gateway': ROOT,
        '/etc/osl': join(ROOT, 'deploy', 'compose', 'config'),
        '/etc/hosts': this.hosts,
        '/run/osl': join(this.secrets, volume),
      },
      writable: { '/var/lib/osl': state },
      cwd: '/etc/osl',
    });
    return this.inside(...within, ...words);
  }
}

const OSL = IMAGE.command.slice(0, 2);

/** The environment of a service: the image's, then its own. */
function environment(service: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const own = compose.services[service]?.environment ?? {};
  return {
    NODE_EXTRA_CA_CERTS: '',
    ...IMAGE.env,
    ...own,
    ...more,
    PATH: `${CONTAINED_PATH}:${process.env['PATH']}`,
  };
}

async function ended(
  [command, args]: readonly [string, readonly string[]],
  env: NodeJS.ProcessEnv = {},
): Promise<Said> {
  return run(command, args, { env: { ...process.env, ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      out: error.stdout,
      err: error.stderr,
    }),
  );
}

/** A Postgres of this machine as the service starts its own, with the secrets that were made for it. */
async function postgres(world: World): Promise<void> {
  const [data, keys] = [join(world.place, 'pg'), join(world.place, 'pg-keys')];
  const secrets = join(world.secrets, 'postgres');
  for (const folder of [data, keys]) {
    mkdirSync(folder);
    await run('chown', ['postgres', folder]);
  }
  for (const name of ['server.crt', 'server.key']) copyFileSync(join(secrets, name), join(keys, name));
  await run('chmod', ['600', join(keys, 'server.key')]);
  await run('chown', ['-R', 'postgres', keys]);
  const as = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'];
  const initdb = [
    join(postgresBin ?? '', 'initdb'),
    '-D',
    data,
    '-U',
    'postgres',
    '--no-sync',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    '-A',
    'trust',
  ];
  await run(as[0] ?? '', [...as.slice(1), ...initdb]);
  // From elsewhere a password is asked for, as the image has it.
  writeFileSync(join(data, 'pg_hba.conf'), 'local all all trust\nhost all all all scram-sha-256\n');
  const settings = [
    'ssl=on',
    `ssl_cert_file=${join(keys, 'server.crt')}`,
    `ssl_key_file=${join(keys, 'server.key')}`,
    `listen_addresses=${ADDRESSES['postgres']}`,
    `unix_socket_directories=${keys}`,
    'fsync=off',
  ];
  const [command, args] = world.inside(
    ...as,
    join(postgresBin ?? '', 'postgres'),
    '-D',
    data,
    ...settings.flatMap((s) => ['-c', s]),
  );
  world.start(command, args, {}, 'SIGQUIT');
  while ((await ended(['pg_isready', ['-q', '-h', keys]])).code !== 0) await sleep(100);
  const env = { POSTGRES_USER: 'postgres', OSL_SECRETS: secrets, PGHOST: keys };
  const made = await ended(['sh', [join(ROOT, 'deploy', 'compose', 'postgres.sh')]], env);
  if (made.code !== 0) throw new Error(made.err);
}

/** Starts a gateway, and waits until it serves. */
async function gateway(world: World, name: string): Promise<ChildProcess> {
  const [command, args] = world.service(name, 'gateway', IMAGE.command);
  const child = world.start(command, args, environment(name, { OSL_HOST: ADDRESSES[name] ?? '' }));
  let said = '';
  const listens = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes('Ctrl-C stops the server.')) resolve();
      });
    child.once('exit', () => reject(new Error(said)));
  });
  await listens;
  return child;
}

t.test('what compose.yaml starts, started one by one', { skip: cannotContain() || lacking }, async (t) => {
  t.setTimeout(600_000);
  t.teardown(() => {
    for (const [child, signal] of [...running].toReversed()) child.kill(signal);
  });
  const world = new World();
  await world.begin();
  const before = readdirSync(world.secrets, { recursive: true }).length;
  const key = readFileSync(join(world.secrets, 'gateway', 'keys', 'signing.key'), 'utf8');
  await run('sh', [join(ROOT, 'deploy', 'compose', 'prepare.sh'), world.secrets]);
  t.equal(readdirSync(world.secrets, { recursive: true }).length, before, 'prepared twice it is the same');
  t.equal(readFileSync(join(world.secrets, 'gateway', 'keys', 'signing.key'), 'utf8'), key);
  mkdirSync(join(world.place, 'app', 'node_modules', 'osl-gateway'), { recursive: true });
  await postgres(world);
  for (const name of ['migrate', 'policy']) {
    const words = [...OSL, ...(compose.services[name]?.command ?? [])];
    const { code, err } = await ended(world.service(name, 'author', words), environment(name));
    t.equal(code, 0, `${name}: ${err}`);
  }
  const first = await gateway(world, 'gateway1');
  await gateway(world, 'gateway2');
  const cfg = join(world.place, 'haproxy.cfg');
  const text = readFileSync(join(ROOT, 'deploy', 'compose', 'haproxy.cfg'), 'utf8');
  // Names are in a file here, and no server answers for them.
  writeFileSync(cfg, text.replaceAll(' resolvers docker', ''));
  const [haproxy, args] = world.named('haproxy', '-db', '-f', cfg);
  world.start(haproxy, args, { OSL_CA: join(world.secrets, 'balancer', 'ca.crt') });

  const osl = (...words: readonly string[]) =>
    ended(world.service('gateway2', 'gateway', [...OSL, ...words]), environment('gateway2'));
  const minted = await osl('token', '--subject', 'user:maria');
  t.equal(minted.code, 0, minted.err);
  const token = minted.out.trim();
  const question = 'select name, email from osl.entities.customer order by name';
  const rest = () =>
    ended(
      world.service('asker', 'gateway', [
        ...OSL,
        'query',
        '--server',
        'https://balancer:18642',
        '--token',
        token,
        '--json',
        question,
      ]),
      { PATH: environment('gateway1')['PATH'], OSL_SERVER_CA: '/run/osl/ca.crt' },
    );
  const rows = [
    { name: 'Ann', email: '[redacted]' },
    { name: 'Bo', email: '[redacted]' },
  ];
  const answered = async (): Promise<Said> => {
    for (;;) {
      const said = await rest();
      if (said.code === 0) return said;
      await sleep(200);
    }
  };
  t.match(
    JSON.parse((await answered()).out),
    { rows },
    'REST by way of the balancer, with its certificate checked',
  );
  const url = `host=balancer port=25432 user=user:maria dbname=osl sslmode=verify-full sslrootcert=${join(world.secrets, 'gateway', 'ca.crt')}`;
  const wire = await ended(world.named('psql', url, '-Atc', question), { PGPASSWORD: token });
  t.match(wire, { code: 0, out: 'Ann|[redacted]\nBo|[redacted]\n' }, wire.err);
  first.kill('SIGKILL');
  t.match(JSON.parse((await answered()).out), { rows }, 'one gateway gone, the other answers');
});
