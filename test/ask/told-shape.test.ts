import { test } from 'tap';
import { toldShape } from '../../src/ask/request/told-shape.js';
import { startTestService } from '../support/service.js';

const SECRET = 'hunter2secret';

/** Wherever a caller may put a value, right or wrong. */
const TEXTS: readonly string[] = [
  `select id from osl.entities.order where note = '${SECRET}'`,
  `select id from osl.entities.order where note = "${SECRET}"`,
  `select id from osl.entities.order where note = ${SECRET}`,
  `select id from osl.entities.order where note = E'a\\'${SECRET}'`,
  `select id from osl.entities.order where note = U&'\\0041${SECRET}'`,
  `select id from osl.entities.order where note = $$${SECRET}$$`,
  `select id from osl.entities.order where note = $tag$ $$ ${SECRET} $tag$`,
  `select id from osl.entities.order where note = 'it''s ${SECRET}'`,
  `select id from osl.entities.order where note = '${SECRET}`,
  `select id from osl.entities.order where note = "${SECRET}`,
  `select id from osl.entities.order where note = $$${SECRET}`,
  `select id /* ${SECRET} */ from osl.entities.order -- ${SECRET}`,
  `select id /* ${SECRET}`,
  `select id /* /* */ ${SECRET} */ from osl.entities.order`,
  `select ${SECRET}(id) as "${SECRET}" from ${SECRET}.${SECRET} ${SECRET}`,
  `${SECRET}`,
  `select 1 as a; password=${SECRET}`,
  `select id from osl.entities.order where note = N'${SECRET}' and note <> B'01${SECRET}'`,
  `select id from osl.entities.order where note = 'a' \n 'b${SECRET}'`,
];

test('no literal and no name that nobody declared is in a shape, wherever it stands', async (t) => {
  const service = await startTestService({ embedded: true });
  t.teardown(() => service.close());
  const { catalog } = service.service.model().manifest;
  const shape = (text: string) => toldShape(text, catalog).shape;
  for (const text of TEXTS) t.notMatch(shape(text), /hunter2/, text);
  t.equal(
    shape(
      "SELECT o.id, count(*) FROM osl.entities.order o WHERE o.id = 5 AND o.id::text <> 'x' -- 7\n LIMIT $1",
    ),
    'select _1.id, count(*) from osl.entities.order _1 where _1.id = ? and _1.id::text <> ? limit $1',
  );
  const print = (text: string) => toldShape(text, catalog).fingerprint;
  t.equal(
    print('select id from osl.entities.order where id = 1'),
    print('SELECT id\nFROM osl.entities.order WHERE id=22'),
  );
  t.not(print('select id from osl.entities.order'), print('select id from osl.entities.order where id = 1'));
});

test('a long text costs no more than its first part', async (t) => {
  const service = await startTestService({ embedded: true });
  t.teardown(() => service.close());
  const { catalog } = service.service.model().manifest;
  for (const part of ["'", '"', '$a', '/*', '$$', 'a', '(', "E'\\", 'u&', '-'])
    t.ok(toldShape(part.repeat(1_000_000), catalog).shape.length < 1_100, part);
});
