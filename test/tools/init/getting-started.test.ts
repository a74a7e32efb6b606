import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import t, { test } from 'tap';
import { startNativePostgres } from '../../support/native-postgres.js';
import { BIN, ROOT, temporary } from '../cli/support.js';

t.setTimeout(600_000);

const native = await startNativePostgres();
t.teardown(() => native?.stop());
const missing = ['script', 'psql'].find((name) => spawnSync(name, ['--version']).status !== 0);
const skip =
  (native === null && 'no native Postgres is installed here') ||
  (missing !== undefined && `\`${missing}\` is not installed here`);

/** The page, with what a reader has of their own in the place of what it names: role, address, ports. */
function pageFor(url: string, role: string): string {
  return readFileSync(join(ROOT, 'docs', 'getting-started.md'), 'utf8')
    .replace('postgres://me:secret@127.0.0.1:5432/shop', url)
    .replace(/\bROLE me\b/, `ROLE ${role}`)
    .replace(/\bTO me;/g, `TO ${role};`);
}

/** The text of each block: that of `sql`, and those of commands, in order. */
function blocksOf(page: string): { readonly sql: string; readonly commands: readonly string[] } {
  const blocks = [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  const of = (language: string) => blocks.filter((b) => b[1] === language).map((b) => b[2] ?? '');
  return { sql: of('sql').join('\n'), commands: of('') };
}

interface Ran {
  readonly code: number | null;
  readonly text: string;
}

/** A reader's shells: one folder, one environment, and `npx osl` as this checkout's command. */
class Reader {
  readonly #env: NodeJS.ProcessEnv;

  constructor(bin: string) {
    const own = Object.entries(process.env).filter(
      ([name]) => !/^(OSL_|PG|npm_|NODE_OPTIONS|TAP)/.test(name),
    );
    const ports = { OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' };
    this.#env = { ...Object.fromEntries(own), ...ports, PATH: `${bin}:${process.env['PATH']}` };
  }

  /** Runs lines of a shell on a terminal, with Enter for every question. */
  async onTerminal(lines: string, cwd: string): Promise<Ran> {
    const file = join(temporary(), 'lines.sh');
    writeFileSync(file, lines);
    const child = spawn('script', ['-qefc', `bash -e "${file}"`, '/dev/null'], { cwd, env: this.#env });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (/\[[^\]]*\](:| ) ?$/.test(text.replace(/\u001b\[[\d;?]*[A-Za-z]/g, ''))) child.stdin.write('\r');
    });
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, text };
  }

  /** Starts lines of a shell that stay, and waits until they have said `words`. */
  async stays(
    lines: string,
    cwd: string,
    words: RegExp,
  ): Promise<{ readonly text: string; stop(): Promise<void> }> {
    const child = spawn('bash', ['-ec', `exec 2>&1\n${lines}`], { cwd, env: this.#env, detached: true });
    let [text, over] = ['', false];
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve())).then(() => {
      over = true;
    });
    while (!words.test(text)) {
      if (over) throw new Error(`it ended: ${text}`);
      await sleep(20);
    }
    const stop = async (): Promise<void> => {
      if (!over) process.kill(-(child.pid ?? 0), 'SIGTERM');
      await ended;
    };
    return { text, stop };
  }

  run(line: string, cwd: string): Ran {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', line], {
      cwd,
      env: this.#env,
      encoding: 'utf8',
    });
    return { code: status, text: `${stdout}${stderr}` };
  }
}

test('docs/getting-started.md, word for word', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const role = `me_${randomBytes(5).toString('hex')}`;
  const url = Object.assign(new URL(native.url), { username: role, password: 'secret' }).href;
  const { sql, commands } = blocksOf(pageFor(url, role));
  const admin = new Client({ connectionString: native.url });
  await admin.connect();
  await admin.query(sql);
  t.teardown(async () => {
    await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await admin.end();
  });
  const bin = temporary();
  writeFileSync(
    join(bin, 'npx'),
    `#!/bin/sh\n[ "$1" = osl ] && shift && exec "${process.execPath}" ${process.execArgv.join(' ')} "${BIN}" "$@"\n`,
  );
  chmodSync(join(bin, 'npx'), 0o755);
  const reader = new Reader(bin);
  const home = temporary();
  const [init = '', serve = '', ...rest] = commands;

  const made = await reader.onTerminal(init, home);
  t.equal(made.code, 0, made.text);
  t.notMatch(made.text, /no such type/, 'an enumeration is read as its text');
  t.match(made.text, /public\.ledger: the role of the connection may not read it/);
  t.match(made.text, /1 relationship\b|2 relationships/);

  const [connect = ''] = init.split('\n');
  const { text, stop } = await reader.stays(`${connect}\n${serve}`, home, /Ctrl-C/);
  t.teardown(stop);
  const port = /REST {2}http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1] ?? '';
  const lines = rest
    .join('')
    .replace(/\\\n\s*/g, '')
    .replaceAll(':8642', `:${port}`)
    .trim()
    .split('\n');
  t.ok(lines.length >= 11, `${lines.length} commands`);
  for (const line of lines) {
    const ran = reader.run(`${connect}\n${line}`, join(home, 'shop'));
    t.equal(ran.code, 0, `${line}\n${ran.text}`);
    t.notMatch(ran.text, /\berror\b.*E\d{4}:|"code":/, line);
    if (line.includes('amount from')) t.match(ran.text, /12\.50/);
    if (line.startsWith('npx osl why')) t.match(ran.text, /email: masked/);
    if (line.startsWith('npx osl diff')) t.match(ran.text, /gains osl\.entities\.customer\.email: masked/);
  }
  // The watched policy is taken up a moment later: the last question, until it shows what the page promises.
  const question = lines.findLast((line) => line.includes('select name, email')) ?? '';
  while (!reader.run(question, join(home, 'shop')).text.includes('ann@example.org')) await sleep(100);
});
