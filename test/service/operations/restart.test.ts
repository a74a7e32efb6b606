import { join } from 'node:path';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { osl, temporary } from '../../tools/cli/support.js';
import { asked, logged, place, run, served, tokenFor } from './support.js';

/** As a container runs its first process: pid 1, and a host name that the next one has not. */
function container(name: string): readonly string[] {
  const script = 'hostname "$0" && exec "$@"';
  return ['unshare', '--pid', '--fork', '--kill-child', '--uts', '--mount-proc', 'sh', '-c', script, name];
}

const COPY = 'this data directory is a copy: it has the keys and the audit log of the original';
const skip =
  run('unshare', '--pid', '--fork', '--uts', '--mount-proc', 'hostname', 'x') === null
    ? 'no namespaces can be made here (that takes root)'
    : false;

t.test('after kill -9 in a container the next container starts', { skip }, async (t) => {
  const where = place();
  const first = await served(t, where, {}, container('one'));
  t.equal(first.record()['pid'], 1);
  await first.signal('SIGKILL');
  const second = await served(t, where, {}, container('two'));
  t.equal(second.record()['pid'], 1, 'where pid 1 is always alive');
  t.equal((await asked(second, '/health')).status, 200);
  t.notOk(
    logged(second).some(({ msg }) => msg === COPY),
    'the directory is the same',
  );

  await t.test('and one beside it is refused, though it cannot see the other process', async (t) => {
    await t.rejects(served(t, where, {}, container('three')), /the audit log in .* is in use by process 1/);
  });
});

t.test('a copy of a data directory starts, and says that it is one', async (t) => {
  const where = place();
  const original = await served(t, where);
  await original.signal('SIGKILL');
  const dataDir = join(temporary(), 'copy');
  t.not(run('cp', '-a', where.dataDir, dataDir), null);
  const again = await served(t, where);
  const copy = await served(t, { ...where, dataDir });
  t.match(
    logged(copy).filter(({ msg }) => msg === COPY),
    [{ level: 40, original: where.dataDir, dataDir }],
  );
  t.notOk(
    logged(again).some(({ msg }) => msg === COPY),
    'the original says nothing of the kind',
  );
  const authorization = `Bearer ${await tokenFor(dataDir)}`;
  for (const server of [again, copy])
    t.equal((await asked(server, '/osl/query', { osql: 'select 1 as a' }, { authorization })).status, 200);
  const verdict = await osl(['audit', 'verify', '--data-dir', where.dataDir, '--json']);
  t.match(JSON.parse(verdict.stdout), {
    integrity: 'intact',
    recovered: [{ epoch: 2, from: Number, to: Number }],
  });
  const told = await osl(['audit', 'verify', '--data-dir', where.dataDir]);
  t.match(told, { code: 0, stdout: /recovered {5}(no record|records \d+ to \d+) after a stop out of order/ });
  await copy.signal('SIGTERM');
  const copies: unknown[] = [];
  for await (const record of readRecords(join(dataDir, 'audit')))
    if (record.action === 'service.copied') copies.push(JSON.parse(record.detail ?? ''));
  t.same(copies, [{ from: where.dataDir, to: dataDir }]);
});
