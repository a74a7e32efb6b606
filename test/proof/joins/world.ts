import { bridgeText, grantsText, manifestText, policyText } from '../../support/model-text.js';

/** A small model with keys of every kind that the join rule tells apart. */
export const MANIFEST = manifestText(
  'joins',
  {
    'j.customer': 'id int4, score int4, region text',
    'j.purchase': 'id int4, customer_id int4, amount int4',
    'j.plot': 'country text, no int4, size int4',
    'j.stay': 'id int4, country text, no int4, nights int4',
    'j.member': 'code text secret, since int4',
    'j.letter': 'id int4, code text secret, pages int4',
    'j.likes': 'customer_id int4, purchase_id int4, stars int4',
  },
  `entities:
  customer: { source: db.j.customer, primary_key: [id], columns: [id, score, region] }
  purchase:
    source: db.j.purchase
    primary_key: [id]
    entity_key_columns: [id, customer_id]
    columns: [id, customer_id, amount]
  plot: { source: db.j.plot, primary_key: [country, no], columns: [country, no, size] }
  stay:
    source: db.j.stay
    primary_key: [id]
    entity_key_columns: [id, country, no]
    columns: [id, country, no, nights]
  member: { source: db.j.member, primary_key: [code], columns: [code, since] }
  letter: { source: db.j.letter, primary_key: [id], entity_key_columns: [id, code], columns: [id, code, pages] }
bridges:
${bridgeText('likes', 'j.likes', ['customer', 'customer_id'], ['purchase', 'purchase_id'], 'stars')}
`,
);

export const POLICY = policyText(
  'joins',
  {
    'user:ann': 'reader',
  },
  `roles:
  reader:
    grants:
${grantsText(['customer', 'purchase', 'plot', 'stay', 'member', 'letter', 'likes'])}
masks: { secret: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

export const SCRIPT = `
create schema j;
create table j.customer (id int4 primary key, score int4, region text);
create table j.purchase (id int4 primary key, customer_id int4, amount int4);
create table j.plot (country text, no int4, size int4, primary key (country, no));
create table j.stay (id int4 primary key, country text, no int4, nights int4);
create table j.member (code text primary key, since int4);
create table j.letter (id int4 primary key, code text, pages int4);
create table j.likes (customer_id int4, purchase_id int4, stars int4);
insert into j.customer values (1, 1, 'eu'), (2, 1, 'us'), (3, 2, 'eu');
insert into j.purchase values (1, 1, 2), (2, 1, 1), (3, 2, 3);
insert into j.plot values ('de', 1, 1), ('de', 2, 2), ('fr', 1, 3);
insert into j.stay values (1, 'de', 1, 1), (2, 'fr', 1, 2);
insert into j.member values ('x', 1), ('y', 2);
insert into j.letter values (1, 'x', 1), (2, 'y', 2);
insert into j.likes values (1, 1, 5), (2, 3, 4);
`;
