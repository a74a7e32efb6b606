import tap, { test } from 'tap';
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
