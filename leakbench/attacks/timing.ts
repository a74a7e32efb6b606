import { attacks, from } from './attack.js';
import { SOURCE } from './sources.js';

/** Questions whose answers may take longer the more is hidden. Judged by statistics, and in a column of its own: nobody defends against all of it. */
export const TIMING = attacks('timing', [
  ...from(SOURCE.indexTime, [
    'select count(*) from customer',
    'select count(*) from purchase',
    'select max(id) from customer',
    "select count(*) from customer where name like '%eedle%'",
    "select count(*) from purchase where item like '%lpha%'",
    "select count(*) from customer where name ~ '(N|O)(e|t)+.*7'",
    'select count(*) from purchase p join customer c on c.id = p.customer_id',
    'select count(*) from customer a join customer b on a.credit = b.credit',
    'select id from customer order by name desc limit 1',
    'select id from purchase order by amount desc limit 1',
    'select count(distinct item) from purchase',
    'select item, count(*) from purchase group by item order by 2 desc, 1 limit 1',
    "select count(*) from customer where region = 'south'",
  ]),
  ...from(SOURCE.indexTime, [
    "select count(*) from customer where name = 'Needle 1007'",
    'select count(*) from customer where id = 1007',
  ]),
  ...from(SOURCE.time, [
    'select count(*) from customer where md5(name) < md5(code)',
    'select sum(amount) from purchase where placed < date $$2001-01-01$$',
    'select count(*) from customer, purchase',
    'select id, row_number() over (order by name) from customer order by 2 desc limit 1',
    'select count(*) from purchase where customer_id > 1000',
  ]),
]);
