import { execFile, spawn } from 'node:child_process';
import pg from 'pg';
import { test } from 'tap';
import { eventually, Scripted } from './support/scripted.js';

interface Printed {
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

/** Runs psql with these statements, one -c each. */
function psql(port: number, password: string, ...statements: string[]): Promise<Printed> {
  const env = { ...process.env, PGPASSWORD: password, LC_ALL: 'C.UTF-8' };
  const where = ['-h', '127.0.0.1', '-p', String(port), '-U', 'ada', 'osl'];
  const args = ['-X', '-At', ...where, ...statements.flatMap((s) => ['-c', s])];
  return new Promise((resolve) => {
    const child = execFile('psql', args, { env }, (_, out, err) =>
      resolve({ out, err, code: child.exitCode }),
    );
  });
}

test('psql', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  t.same(await psql(port, 'right', 'rows 3', 'none; rows 1', 'notice'), {
    out: '1\n2\n3\nNONE\n1\nNOTICE\n',
    err: 'NOTICE:  hear hear\n',
    code: 0,
  });
  t.same(await psql(port, 'right', 'refuse'), {
    out: '',
    err: 'ERROR:  not for you\nLINE 1: refuse\n        ^\nHINT:  ask\n',
    code: 1,
  });
  t.match((await psql(port, 'wrong', 'none')).err, 'FATAL:  password authentication failed for user "ada"');
  t.same((await psql(port, 'right', 'COPY')).out, 'COPY\n');
  t.same((await psql(port, 'right', 'copy')).out, 'a\tb\nc\td\n');
});

test('psql cancels on SIGINT', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const env = { ...process.env, PGPASSWORD: 'right' };
  const child = spawn(
    'psql',
    ['-X', '-h', '127.0.0.1', '-p', String(port), '-U', 'ada', 'osl', '-c', 'wait'],
    { env },
  );
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  await eventually(() => handler.sessions[0]?.waiting === true);
  child.kill('SIGINT');
  await new Promise((resolve) => child.on('close', resolve));
  t.match(err, 'ERROR:  canceling statement due to user request');
  t.equal(handler.sessions[0]?.cancelled, 1);
});

test('node-postgres', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'ada', password: 'right', database: 'osl' });
  await client.connect();
  t.same((await client.query('rows 2')).rows, [{ n: 1 }, { n: 2 }]);
  t.same((await client.query('echo', ['hé'])).rows, [{ t: 'hé' }]);
  t.same((await client.query('echo', [null])).rows, [{ t: null }]);
  for (let i = 0; i < 3; i++)
    t.same((await client.query({ name: 'e', text: 'echo', values: [`${i}`] })).rows, [{ t: `${i}` }]);
  t.equal(
    handler.log.filter((line) => line === 'prepare echo').length,
    3,
    'a named statement is prepared once',
  );
  await t.rejects(client.query('refuse', []), { code: '42501', hint: 'ask', severity: 'ERROR' });
  await t.rejects(client.query('echo', ['a\0b']), { code: '22021' });
  t.same((await client.query('')).rows, []);
  t.equal((await client.query('blob 50000 100')).rows.length, 100);
  t.same((await client.query({ text: 'rows 2', rowMode: 'array' })).rows, [[1], [2]]);
  await client.end();
  await eventually(() => handler.sessions[0]?.closed === 1);

  const wrong = new pg.Client({ host: '127.0.0.1', port, user: 'ada', password: 'wrong' });
  await t.rejects(wrong.connect(), { code: '28P01' });
  const options = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'ada',
    password: 'right',
    options: '-c x=1',
  });
  await t.rejects(options.connect(), { code: '42501' });
});

test('a node-postgres pool of many at once', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'ada', password: 'right', max: 20 });
  pool.on('error', () => {});
  const counts = await Promise.all([...Array(500).keys()].map((i) => pool.query(`rows ${i % 7}`)));
  t.ok(
    counts.every(({ rows }, i) => rows.length === i % 7),
    'every answer reached its own question',
  );
  await pool.end();
});
