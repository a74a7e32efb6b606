/**
 * The systemd unit under a real systemd: part of `npm run image-drill`. A Debian with systemd is booted in a container
 * of systemd-nspawn whose changes are discarded; the gateway is installed there as docs/operations.md describes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { run } from '../../../../release/run.js';
import { EXAMPLE, ROOT, temporary } from '../../cli/support.js';
import { debian, installNode, nodeOfDockerfile } from './base.js';
import { freePort } from './free-port.js';
import { lacking } from './podman.js';

const UNIT = 'osl-gateway';
const OSL = ['node', '/opt/osl/node_modules/osl-gateway/bin/osl.js'];
/** Of 10; what `systemd-analyze security` counts against the unit. */
const HIGHEST_EXPOSURE = 1.3;

t.setTimeout(900_000);

/** A booted system, in which commands run as root. */
class Machine {
  readonly #nspawn: ChildProcess;

  private constructor(nspawn: ChildProcess) {
    this.#nspawn = nspawn;
  }

  static async boot(root: string, readOnly: Readonly<Record<string, string>>): Promise<Machine> {
    const mounts = Object.entries(readOnly).map(([to, from]) => `--bind-ro=${from}:${to}`);
    const how = ['--register=no', '--keep-unit', '--volatile=overlay', '--console=pipe', '--boot'];
    const nspawn = spawn('systemd-nspawn', [...how, ...mounts, '--directory', root], { stdio: 'ignore' });
    const machine = new Machine(nspawn);
    while (!/^(running|degraded)/.test(await machine.#tried('systemctl', 'is-system-running'))) {
      if (nspawn.exitCode !== null) throw new Error(`systemd-nspawn ended with ${nspawn.exitCode}`);
      await sleep(200);
    }
    return machine;
  }

  /** Runs a command in the container. @throws Error with its standard error if it fails */
  async run(...command: readonly string[]): Promise<string> {
    const children = readFileSync(`/proc/${this.#nspawn.pid}/task/${this.#nspawn.pid}/children`, 'utf8');
    const init = children.trim();
    if (init === '') throw new Error('the container has no first process yet');
    return run('/', 'nsenter', '--target', init, '--mount', '--uts', '--ipc', '--pid', '--', ...command);
  }

  #tried(...command: readonly string[]): Promise<string> {
    return this.run(...command).catch((error: Error) => error.message.split('\n').slice(1).join('\n'));
  }

  async property(name: string): Promise<string> {
    return (await this.run('systemctl', 'show', UNIT, '--property', name, '--value')).trim();
  }

  async powerOff(): Promise<void> {
    const ended = new Promise((exit) => this.#nspawn.once('exit', exit));
    await this.#tried('systemctl', 'poweroff');
    await Promise.race([ended, sleep(20_000, null, { ref: false })]);
    this.#nspawn.kill('SIGKILL');
  }
}

/** Packs, installs and prunes this checkout. */
async function installed(): Promise<string> {
  const [packed, app] = [temporary(), temporary()];
  await run(ROOT, 'sh', 'deploy/pack.sh', packed);
  const files = readdirSync(packed).map((name) => join(packed, name));
  await run(ROOT, 'sh', 'deploy/install.sh', app, ...files);
  await run(ROOT, 'sh', 'deploy/prune.sh', app);
  await run(ROOT, 'chmod', '755', app);
  return app;
}

const skip = lacking('systemd-nspawn', 'debootstrap', 'nsenter', 'npm');

t.test('the unit under systemd', { skip }, async (t) => {
  const { release, version } = nodeOfDockerfile(join(ROOT, 'Dockerfile'));
  const root = await debian(release, ['systemd', 'systemd-sysv', 'dbus']);
  await installNode(root, version);
  const files = join(temporary(), 'deploy');
  mkdirSync(files);
  const unit = readFileSync(join(ROOT, 'deploy', `${UNIT}.service`), 'utf8');
  writeFileSync(join(files, `${UNIT}.service`), unit.replace('/usr/bin/node', '/usr/local/bin/node'));
  for (const name of ['manifest.yaml', 'policy.yaml']) copyFileSync(join(EXAMPLE, name), join(files, name));
  const port = await freePort();
  writeFileSync(join(files, 'osl.env'), `OSL_HOST=127.0.0.1\nOSL_HTTP_PORT=${port}\nOSL_PG_PORT=0\n`);
  const machine = await Machine.boot(root, { '/opt/osl': await installed(), '/deploy': files });
  t.teardown(() => machine.powerOff());
  const ready = async (): Promise<void> => {
    const url = `http://127.0.0.1:${port}/ready`;
    while (
      !(await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      if ((await machine.property('ActiveState')) === 'failed')
        throw new Error(await machine.run('journalctl', '--no-pager', '--unit', UNIT));
      await sleep(100);
    }
  };
  const journal = (): Promise<string> => machine.run('journalctl', '--no-pager', '--unit', UNIT);
  const install = `mkdir -p /etc/osl && cp /deploy/*.yaml /deploy/osl.env /etc/osl/ && cp /deploy/${UNIT}.service /etc/systemd/system/`;
  await machine.run('sh', '-c', install);
  await machine.run('systemctl', 'daemon-reload');
  const began = performance.now();
  await machine.run('systemctl', 'enable', '--now', UNIT);
  await ready();
  t.comment(`ready after ${((performance.now() - began) / 1_000).toFixed(1)} s on an empty data directory`);

  await t.test(
    'it runs as a user of its own, without capabilities, behind a filter of system calls',
    async (t) => {
      const status = await machine.run('cat', `/proc/${await machine.property('MainPID')}/status`);
      t.notMatch(status, /^Uid:\s+0\s/m);
      t.match(status, /^CapBnd:\s+0+$/m);
      t.match(status, /^NoNewPrivs:\s+1$/m);
      t.match(status, /^Seccomp:\s+2$/m);
      const said = await machine.run('systemd-analyze', 'security', '--no-pager', UNIT);
      const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(said)?.[1]);
      t.comment(`exposure ${exposure} of 10`);
      t.ok(exposure < HIGHEST_EXPOSURE);
    },
  );

  await t.test('it answers, and reloads', async (t) => {
    const mint = [...OSL, 'token', '--data-dir', '/var/lib/osl', '--subject', 'user:analyst'];
    const token = (await machine.run(...mint)).trim();
    const reply = await fetch(`http://127.0.0.1:${port}/osl/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ osql: 'select 1 as n' }),
    });
    t.match(await reply.json(), { rows: [{ n: 1 }] });
    await machine.run('systemctl', 'reload', UNIT);
    await sleep(1_000);
    t.match(await journal(), /reloaded: /);
    t.equal(await machine.property('NRestarts'), '0');
  });

  await t.test(
    'it is started again after a crash, and not after a configuration that cannot work',
    async (t) => {
      await machine.run('systemctl', 'kill', '--signal', 'SIGKILL', UNIT);
      while ((await machine.property('NRestarts')) !== '1') await sleep(200);
      await ready();
      await machine.run('sh', '-c', 'echo OSL_HTTP_PORT=none >> /etc/osl/osl.env');
      await machine.run('systemctl', 'restart', UNIT);
      while ((await machine.property('ActiveState')) !== 'failed') await sleep(200);
      await sleep(3_000); // RestartSec is 2
      t.equal(await machine.property('ActiveState'), 'failed');
      t.equal(await machine.property('ExecMainStatus'), '2');
    },
  );

  await t.test('it stops cleanly', async (t) => {
    await machine.run('sh', '-c', "sed -i '/none/d' /etc/osl/osl.env");
    await machine.run('systemctl', 'restart', UNIT);
    await ready();
    await machine.run('systemctl', 'stop', UNIT);
    t.equal(await machine.property('Result'), 'success');
    t.equal(await machine.property('ExecMainStatus'), '0');
    t.match(await journal(), /: stopped$/m);
    const verify = [...OSL, 'audit', 'verify', '--data-dir', '/var/lib/osl'];
    t.match(await machine.run(...verify), /the chain holds/);
  });
});
