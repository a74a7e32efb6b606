import { readFileSync, writeFileSync } from 'node:fs';
import tap, { test } from 'tap';
import { connectPg } from '../../support/pg-client.js';
import { bind, close, describe, execute, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { psqlScript, startBoth } from './support.js';

const both = await startBoth();
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

/** Each script is run by psql against Postgres itself and against the gateway; they must print the same. */
const SCRIPTS: Readonly<Record<string, string>> = {
  'a cursor gives its rows in portions': `
    begin; declare c cursor for select id, region from "order" order by id;
    fetch c; fetch 2 from c; fetch forward 3 in c; move 4 from c; fetch next from c; fetch all from c; fetch c;
    close c; commit;`,
  'the end is the end, also after MOVE ALL': `
    begin; declare c cursor for select id from "order" order by id; move all from c; fetch c; fetch all c; rollback;`,
  'FETCH 0 and counts beyond the end': `
    begin; declare c cursor for select id from product order by id; fetch 100 from c; fetch 100 from c; end;`,
  'a cursor needs a block': `declare c cursor for select 1; fetch c;`,
  'a cursor ends with its block': `
    begin; declare c cursor for select id from product order by id; fetch c; commit; fetch c;
    begin; fetch c; rollback;`,
  'a cursor WITH HOLD outlives its block': `
    begin; declare c cursor with hold for select id from product order by id; fetch c; commit;
    fetch c; fetch c; close c; fetch c;`,
  'a cursor WITH HOLD outside of a block': `
    declare c cursor with hold for select id from product order by id; fetch all from c; close all;`,
  'a rolled-back block takes its cursors WITH HOLD along': `
    begin; declare c cursor with hold for select 1; rollback; fetch c;`,
  'names are taken once': `begin; declare c cursor for select 1; declare c cursor for select 2; rollback;`,
  'an unknown name': `begin; fetch nothing; rollback; close nothing; move nothing;`,
  'an error in the question ends the block': `
    begin; declare c cursor for select 1/(id-2) from product order by id; fetch c; fetch c; fetch c; rollback;`,
  'several cursors side by side': `
    begin; declare a cursor for select id from product order by id; declare b no scroll cursor for values (7), (8);
    fetch a; fetch b; fetch a; fetch b; fetch a; close a; fetch b; close all; commit;`,
  'no name without quotes is folded away': `
    begin; declare "My Cursor" cursor for select 1 as one; fetch "My Cursor"; close "My Cursor"; commit;`,
  'backward is refused': `
    begin; declare c no scroll cursor for select 1; fetch c; fetch prior from c; rollback;`,
  'a cursor that scrolls goes both ways': `
    begin; declare c scroll cursor for select id, note from "order" order by id;
    fetch last from c; fetch prior from c; fetch first from c; fetch backward from c; fetch next from c;
    fetch absolute 5 from c; fetch relative 3 from c; fetch relative -2 from c; fetch relative 0 from c; fetch 0 from c;
    fetch -3 from c; fetch backward 2 from c; fetch backward all from c; fetch backward all from c; fetch prior from c;
    fetch forward all from c; fetch next from c; fetch prior from c; fetch absolute -2 from c; fetch absolute 100 from c;
    fetch backward 3 from c; fetch absolute 0 from c; fetch next from c; fetch absolute -100 from c; fetch 2 from c;
    move 3 from c; move backward 2 from c; fetch c; move last from c; fetch c; move absolute 4 from c; fetch c;
    move backward all from c; fetch c; move all from c; move relative -3 from c; fetch c; fetch forward -2 from c;
    fetch backward -2 from c; move 0 from c; move absolute 0 from c; move relative 0 from c; move prior from c;
    fetch forward 39 from c; fetch 5 from c; fetch backward 100 from c; fetch c; close c; commit;`,
  'a cursor that scrolls and is held': `
    begin; declare c scroll cursor with hold for select id from product order by id; fetch c; commit;
    fetch c; fetch c; fetch prior from c; fetch first from c; close c;`,
  'a cursor that scrolls over the catalog, and over nothing': `
    begin; declare a scroll cursor for select n from generate_series(1, 5) as n; fetch last from a; fetch first from a;
    declare b scroll cursor for select id from product where false; fetch last from b; fetch first from b;
    fetch prior from b; fetch absolute 0 from b; move all from b; commit;`,
  'an error is not the end of a cursor that scrolls': `
    begin; declare c scroll cursor for select 1/(id-2) from product order by id; fetch c; savepoint s; fetch last from c;
    rollback to s; rollback;`,
  'comments and case do not matter': `
    begin; DECLARE /* for */ c -- cursor for
      CURSOR FOR /* select */ select id, 'for' as "for" from product order by 1; FETCH ALL FROM c; COMMIT;`,
  'DISCARD ALL closes what is held': `
    declare c cursor with hold for select 1; discard all; fetch c;`,
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(name, { skip }, async (t) => {
    if (both === null) return;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    t.equal(ours, theirs);
  });
}

test('a cursor is governed like any question', { skip }, async (t) => {
  if (both === null) return;
  const printed = await psqlScript(
    await both.gateway('user:eu'),
    `begin; declare c cursor for select id, email, tax_no from customer order by id; fetch all from c; rollback;
     begin; declare d cursor for select id, email from customer order by id; fetch all from d; commit;`,
  );
  t.match(printed, /ERROR: {2}42703/);
  t.match(printed, /1\|\[redacted\]\n2\|\[redacted\]\n(?!3)/);
});

const ORDERS = 'select id from "order" where id <= 10 order by id';
const DECLARED = [query('begin'), query(`declare c cursor for ${ORDERS}`)];
const BOUND = [query('begin'), parse('s', ORDERS), bind('p', 's'), sync];
const run = (text: string, maxRows = 0) => [
  parse('', text),
  bind('', ''),
  describe('P'),
  execute('', maxRows),
  sync,
];
const ID = 'T id:20:text';

/** Messages and what comes for them in a block, as Postgres 15 answers them: portals and cursors share their names. */
const NAMED: Readonly<Record<string, readonly [sent: readonly Buffer[], said: readonly string[]]>> = {
  'MOVE is not suspended': [
    [...DECLARED, ...run('move 3 in c', 1), ...run('fetch 1 from c'), ...run('move all in c', 2)],
    ['1', '2', 'n', 'C MOVE 3', '1', '2', ID, 'D 4', 'C FETCH 1', '1', '2', 'n', 'C MOVE 6'],
  ],
  'FETCH, MOVE and CLOSE of a portal': [
    [...BOUND, query('move 2 in p'), query('fetch 1 from p'), execute('p', 1), sync, query('move all in p')],
    ['1', '2', 'C MOVE 2', ID, 'D 3', 'C FETCH 1', 'D 4', 's', 'C MOVE 6'],
  ],
  'the same in extended messages': [
    [...BOUND, ...run('move 2 in p'), ...run('fetch 2 from p'), execute('p', 1), sync, ...run('close p')],
    ['1', '2', '1', '2', 'n', 'C MOVE 2', '1', '2', ID, 'D 3', 'D 4', 'C FETCH 2', 'D 5', 's'].concat([
      '1',
      '2',
      'n',
      'C CLOSE CURSOR',
    ]),
  ],
  'a portal that is closed by its name': [
    [...BOUND, query('close p'), execute('p'), sync],
    ['1', '2', 'C CLOSE CURSOR', 'E ERROR 34000 portal "p" does not exist'],
  ],
  'CLOSE ALL closes portals': [
    [...BOUND, query('close all'), execute('p'), sync],
    ['1', '2', 'C CLOSE CURSOR ALL', 'E ERROR 34000 portal "p" does not exist'],
  ],
  'a portal that has ended gives no rows': [
    [...BOUND, query('move all in p'), execute('p'), sync, query('fetch 1 from p')],
    ['1', '2', 'C MOVE 10', 'C SELECT 0', ID, 'C FETCH 0'],
  ],
  'Describe, Execute and Close of a cursor': [
    [
      ...DECLARED,
      describe('P', 'c'),
      execute('c', 2),
      sync,
      query('fetch 1 from c'),
      execute('c'),
      execute('c'),
    ].concat([close('P', 'c'), sync, query('fetch 1 from c')]),
    [ID, 'D 1', 'D 2', 's', ID, 'D 3', 'C FETCH 1', ...[4, 5, 6, 7, 8, 9, 10].map((n) => `D ${n}`)].concat([
      'C SELECT 7',
      'C SELECT 0',
      '3',
      'E ERROR 34000 cursor "c" does not exist',
    ]),
  ],
  'a name is taken once: by a cursor': [
    [...DECLARED, parse('', 'select 1'), bind('c', ''), sync],
    ['1', 'E ERROR 42P03 cursor "c" already exists'],
  ],
  'a name is taken once: by a portal': [
    [...BOUND, query('declare p cursor for select 1')],
    ['1', '2', 'E ERROR 42P03 cursor "p" already exists'],
  ],
  'a portal cannot be run by itself': [
    [...BOUND, parse('f', 'fetch 1 from p'), close('P', 'p'), bind('p', 'f'), execute('p'), sync],
    ['1', '2', '1', '3', '2', 'E ERROR 55000 portal "p" cannot be run'],
  ],
  'a FETCH of a name that is another portal by now': [
    [
      ...BOUND,
      parse('f', 'fetch 1 from p'),
      close('P', 'p'),
      parse('', 'select 1 as one'),
      bind('p', ''),
    ].concat([bind('', 'f'), execute(), sync]),
    ['1', '2', '1', '3', '1', '2', '2', 'E ERROR 0A000 cached plan must not change result type'],
  ],
};

test('portals and cursors have their names from one set', { skip }, async (t) => {
  if (both === null) return;
  const { PGPASSWORD: token = '' } = await both.gateway('user:ada');
  for (const [name, [sent, expected]] of Object.entries(NAMED)) {
    const client = await Client.login(both.port, 'user:ada', token);
    client.send(...sent);
    const said: string[] = [];
    for (const message of sent)
      if (message[0] === 0x51 || message[0] === 0x53) said.push(...(await client.until('Z')));
    const told = said
      .filter((line) => !/^(Z|C BEGIN|C DECLARE)/.test(line))
      .map((line) => line.replace(/ \[.*/, ''));
    t.same(told, expected, name);
    client.end();
  }
});

test('what a cursor that scrolls has kept is given under the rights of its reading only', {
  skip,
}, async (t) => {
  if (both === null) return;
  const client = await connectPg({
    port: both.port,
    user: 'user:ada',
    password: (await both.gateway('user:ada'))['PGPASSWORD'],
  });
  t.teardown(() => client.end());
  await client.query('begin; declare c scroll cursor for select id, email from customer order by id');
  t.equal((await client.query('fetch all from c')).rows.length, 4);
  const policy = readFileSync(both.shop.policyFile, 'utf8');
  writeFileSync(
    both.shop.policyFile,
    policy.replace('user:ada: { ceiling: [auditor, analyst] }', 'user:ada: { ceiling: [analyst] }'),
  );
  await both.shop.open.reload();
  await t.rejects(client.query('fetch first from c'), { code: '55000' });
  writeFileSync(both.shop.policyFile, policy);
  await both.shop.open.reload();
});
