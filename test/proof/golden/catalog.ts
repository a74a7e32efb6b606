import {
  type Access,
  type AttributePattern,
  attributePattern,
  bindPredicate,
  type Catalog,
  type Column,
  type ComputedColumn,
  computedFacts,
  type Edge,
  forChain,
  type GroupRule,
  type MaskKind,
  type Metric,
  type MetricInput,
  metricColumns,
  type Relation,
  type RelationAccess,
  type RelationGrant,
  ready,
  type TypeName,
} from 'osl-compiler';

/** The one shop that every golden case asks about, and the callers who ask. */

await ready();

interface ColumnExtras {
  readonly physical?: string;
  readonly sensitivity?: string;
  readonly keyDomain?: string;
}

/** A column without a description, stored by its own name. */
export function column(name: string, type: TypeName, extras: ColumnExtras = {}): Column {
  return {
    name,
    physical: extras.physical ?? name,
    type,
    description: null,
    nullable: true,
    sensitivity: extras.sensitivity ?? null,
    keyDomain: extras.keyDomain ?? null,
  };
}

function relation(
  name: string,
  table: string,
  sealedKeys: readonly string[],
  columns: readonly Column[],
): Relation {
  return {
    kind: 'entity',
    name,
    description: null,
    connector: 'main',
    schema: 'shop',
    table,
    columns,
    primaryKey: ['id'],
    sealedKeys,
  };
}

const customer = relation(
  'customer',
  'customers',
  ['id', 'tax_no'],
  [
    column('id', 'int4'),
    column('name', 'text'),
    column('email', 'text', { sensitivity: 'pii' }),
    column('phone', 'text', { sensitivity: 'contact' }),
    column('ssn', 'text', { sensitivity: 'secret' }),
    column('tax_no', 'text', { sensitivity: 'tax', keyDomain: 'tax' }),
    column('born', 'date', { sensitivity: 'birth' }),
    column('joined', 'timestamptz', { sensitivity: 'birth' }),
    column('score', 'numeric', { sensitivity: 'finance' }),
    column('vip', 'bool'),
    column('region', 'text', { physical: 'region_code' }),
    column('profile', 'jsonb'),
    column('labels', 'text[]'),
  ],
);

const order: Relation = {
  timeDimension: 'placed',
  ...relation(
    'order',
    'orders',
    ['id', 'customer_id'],
    [
      column('id', 'int4'),
      column('customer_id', 'int4'),
      column('placed', 'timestamptz'),
      column('shipped', 'timestamp'),
      column('amount', 'numeric'),
      column('status', 'text'),
      column('note', 'text', { sensitivity: 'pii' }),
      column('region', 'text'),
    ],
  ),
};

/** A computed column that is derived from nothing yet. */
export const computed = (name: string, expression: string, type: TypeName = 'text'): ComputedColumn => ({
  name,
  type,
  description: null,
  expression,
  reads: [],
  keys: [],
  sensitivity: null,
  labels: [],
});

const lineItem: Relation = {
  ...relation(
    'line_item',
    'line_items',
    ['id', 'order_id', 'product_id'],
    [
      column('id', 'int8'),
      column('order_id', 'int4'),
      column('product_id', 'uuid'),
      column('quantity', 'int4'),
      column('price', 'numeric'),
    ],
  ),
  computed: [
    computed('total', 'quantity * price'),
    // Fails on a row of one piece.
    computed('per_more', 'total / (quantity - 1)'),
    computed('buyer_name', 'item_order.customer.name'),
    computed('buyer_mail', "lower(item_order.customer.email) || '!'"),
    computed('order_note', '"order".note'),
    computed('heavy', 'product.weight > 2'),
  ],
};

const product = relation(
  'product',
  'products',
  ['id'],
  [column('id', 'uuid'), column('title', 'text'), column('weight', 'float8'), column('price', 'numeric')],
);

const tag = relation('tag', 'tags', ['id', 'label'], [column('id', 'int4'), column('label', 'text')]);

const invoice = relation(
  'invoice',
  'invoices',
  ['id', 'tax_no'],
  [
    column('id', 'int4'),
    column('tax_no', 'text', { sensitivity: 'tax', keyDomain: 'tax' }),
    column('total', 'numeric'),
  ],
);

const productTag: Relation = {
  ...relation(
    'product_tag',
    'product_tags',
    ['product_id', 'tag_id'],
    [column('product_id', 'uuid'), column('tag_id', 'int4')],
  ),
  kind: 'bridge',
  primaryKey: ['product_id', 'tag_id'],
};

const elsewhere: Relation = {
  ...relation('parcel', 'parcels', ['id', 'order_id'], [column('id', 'int4'), column('order_id', 'int4')]),
  connector: 'other',
};

/** States in an order of their own, which is not that of their letters. */
const STATE = { stored: 'enum shop.state', labels: ['open', 'busy', 'closed'] };
const ticket = relation(
  'ticket',
  'tickets',
  ['id'],
  [
    column('id', 'int4'),
    column('owner', 'text'),
    { ...column('state', 'text'), ...STATE },
    { ...column('veiled', 'text', { sensitivity: 'pii' }), ...STATE },
  ],
);

const link = (name: string, from: string, column: string, to: string): Edge => ({
  name,
  from,
  to,
  fromColumns: [column],
  toColumns: ['id'],
  bridge: null,
});

const EDGES: readonly Edge[] = [
  link('order_customer', 'order', 'customer_id', 'customer'),
  link('item_order', 'line_item', 'order_id', 'order'),
  link('item_product', 'line_item', 'product_id', 'product'),
];

const DECLARED = [customer, order, lineItem, product, tag, invoice, productTag, elsewhere, ticket];

/** With what the text of a computed column does not say. */
const RELATIONS = DECLARED.map((r): Relation => {
  if (r.computed === undefined) return r;
  const relations = new Map(DECLARED.map((d) => [d.name, d]));
  const catalog = { version: '', relations, metrics: new Map(), facets: new Map(), edges: EDGES };
  return { ...r, computed: r.computed.map((c) => ({ ...c, ...computedFacts(c.name, r, catalog) })) };
});

const simple = (name: string, entity: string, expression: string, filter: string | null = null): Metric => ({
  type: 'simple',
  name,
  description: null,
  entity,
  expression,
  filter,
});
const paid: MetricInput = { metric: 'orders', filter: "status = 'paid'" };
const all = (metric: string): MetricInput => ({ metric, filter: null });

const METRICS: readonly Metric[] = [
  simple('revenue', 'order', 'sum(amount)', "status <> 'void'"),
  simple('average_order', 'order', 'sum(amount) / count(*)'),
  simple('orders', 'order', 'count(*)'),
  // Its name is also a column's.
  simple('amount', 'order', 'max(amount)'),
  simple('buyers', 'order', 'count(distinct customer_id)'),
  simple('average_score', 'customer', 'avg(score)'),
  simple('pieces', 'line_item', 'sum(quantity)'),
  simple('turnover', 'line_item', 'sum(total)', 'heavy'),
  {
    type: 'ratio',
    name: 'paid_share',
    description: null,
    format: { kind: 'percent' },
    entity: 'order',
    numerator: paid,
    denominator: all('orders'),
  },
  {
    type: 'ratio',
    name: 'piece_price',
    description: null,
    entity: null,
    numerator: all('revenue'),
    denominator: all('pieces'),
  },
  {
    type: 'derived',
    name: 'per_order',
    description: null,
    entity: 'order',
    expression: 'round(revenue / orders, 2) - 1',
  },
  {
    type: 'cumulative',
    name: 'revenue_so_far',
    description: null,
    entity: 'order',
    metric: 'revenue',
    span: { kind: 'unbounded' },
  },
  {
    type: 'cumulative',
    name: 'buyers_30_days',
    description: null,
    entity: 'order',
    metric: 'buyers',
    span: { kind: 'window', count: 30, unit: 'day' },
  },
  {
    type: 'cumulative',
    name: 'revenue_of_month',
    description: null,
    entity: 'order',
    metric: 'revenue',
    span: { kind: 'to_date', grain: 'month' },
  },
  {
    type: 'cumulative',
    name: 'revenue_last_month',
    description: null,
    entity: 'order',
    metric: 'revenue',
    span: { kind: 'offset', count: 1, unit: 'month' },
  },
  {
    type: 'cumulative',
    name: 'orders_at_first',
    description: null,
    entity: 'order',
    metric: 'orders',
    span: { kind: 'offset_to_grain', grain: 'year' },
  },
  {
    type: 'derived',
    name: 'growth',
    description: null,
    entity: 'order',
    expression: 'round(revenue / revenue_last_month - 1, 3)',
  },
  simple('vip_revenue', 'order', 'sum(amount)', "customer.vip and status <> 'void'"),
  simple(
    'eu_pieces',
    'line_item',
    'sum(quantity)',
    "item_order.order_customer.region = 'eu' and product.weight > 1",
  ),
  simple('taxed', 'order', 'count(*)', 'customer.tax_no is not null'),
  simple('opened', 'order', 'count(*)', "status = 'open'"),
  simple('settled', 'order', 'count(*)', "status = 'paid'"),
  simple('settled_for', 'order', 'sum(amount)', "status = 'paid' and customer.vip is not null"),
  {
    type: 'conversion',
    name: 'settled_after',
    description: null,
    entity: 'order',
    base: 'opened',
    conversion: 'settled_for',
    conversionEntity: 'order',
    same: [{ base: 'customer_id', conversion: 'customer_id' }],
    window: { kind: 'window', count: 30, unit: 'day' },
    calculation: 'conversions',
  },
  {
    type: 'conversion',
    name: 'settling',
    description: null,
    format: { kind: 'percent' },
    entity: 'order',
    base: 'opened',
    conversion: 'settled',
    conversionEntity: 'order',
    same: [
      { base: 'customer_id', conversion: 'customer_id' },
      { base: 'region', conversion: 'region' },
    ],
    window: null,
    calculation: 'conversion_rate',
  },
  // Fails on a row of another region.
  simple('brittle', 'order', 'count(*)', "1 / (case region when 'us' then 0 else 1 end) = 1"),
  {
    type: 'conversion',
    name: 'brittle_after',
    description: null,
    entity: 'order',
    base: 'brittle',
    conversion: 'brittle',
    conversionEntity: 'order',
    same: [{ base: 'customer_id', conversion: 'customer_id' }],
    window: null,
    calculation: 'conversions',
  },
  simple('median_order', 'order', 'percentile_cont(0.5) within group (order by amount)'),
];

export const CATALOG: Catalog = {
  version: 'shop-1',
  relations: new Map(RELATIONS.map((r) => [r.name, r])),
  facets: new Map(),
  edges: EDGES,
  // All tables but that of the tags.
  rawTables: new Map(RELATIONS.filter((r) => r !== tag).map((r) => [`${r.schema}.${r.table}`, r])),
  metrics: new Map(METRICS.map((m) => [m.name, m])),
};

// ---------------------------------------------------------------- callers

export interface Caller {
  readonly access: Access;
  /** The attributes of each chain subject, root first. */
  readonly attributes: readonly ReadonlyMap<string, readonly string[]>[];
}

const LABELS = ['pii', 'contact', 'secret', 'tax', 'birth', 'finance'];

export const MASKS: ReadonlyMap<string, MaskKind> = new Map<string, MaskKind>([
  ['pii', 'redact'],
  ['contact', 'partial'],
  ['secret', 'deny'],
  ['tax', 'hash'],
  ['birth', 'year'],
  ['finance', 'null'],
]);

export interface GrantParts {
  readonly id: string;
  /** All of them where none are given. */
  readonly columns?: readonly string[];
  readonly unmask?: readonly string[];
  readonly filter?: string;
  /** No row output: aggregates over so many at least, of these metrics alone where some are given. */
  readonly minimum?: number;
  readonly metrics?: readonly string[];
}

const WRITTEN = new WeakMap<RelationGrant, GrantParts>();

/** A caller's grant as it is written above. */
export function grantParts(grant: RelationGrant): GrantParts {
  const parts = WRITTEN.get(grant);
  if (parts === undefined) throw new Error(`nobody wrote grant ${grant.id}`);
  return parts;
}

function grant(of: Relation, parts: GrantParts, chain: readonly AttributePattern[]): RelationGrant {
  const made = {
    id: parts.id,
    columns: new Set(parts.columns ?? of.columns.map((c) => c.name)),
    unmask: new Set(parts.unmask ?? []),
    filter: parts.filter === undefined ? null : forChain(bindPredicate(parts.filter, of), chain),
    ...(parts.minimum === undefined ? {} : { groups: groupRule(parts.minimum, parts.metrics) }),
  };
  WRITTEN.set(made, parts);
  return made;
}

function groupRule(minimum: number, metrics: readonly string[] | undefined): GroupRule {
  const columnsOf = (name: string): ReadonlySet<string> => {
    const metric = CATALOG.metrics.get(name);
    if (metric?.type !== 'simple') throw new Error(`no simple metric ${name}`);
    return metricColumns(metric, CATALOG);
  };
  return {
    minimum,
    metrics: metrics === undefined ? null : new Map(metrics.map((name) => [name, columnsOf(name)])),
  };
}

function granted(
  of: Relation,
  grants: readonly RelationGrant[],
  denied: readonly string[] = [],
): [string, RelationAccess] {
  return [of.name, { grants, masks: MASKS, denied: new Set(denied) }];
}

function caller(
  signature: string,
  relations: readonly [string, RelationAccess][],
  attributes: Caller['attributes'] = [new Map()],
): Caller {
  const access = {
    signature,
    policyVersion: 'policy-1',
    chainLength: attributes.length,
    relations: new Map(relations),
  };
  return { access, attributes };
}

/** Every relation whole, `parts` for each. */
function whole(parts: Omit<GrantParts, 'id'>): readonly [string, RelationAccess][] {
  return RELATIONS.map((r) => granted(r, [grant(r, { id: `g-${r.name}`, ...parts }, [])]));
}

const ONE_REGION = [new Map([['region', ['eu']]])];
const TWO_SUBJECTS = [new Map([['region', ['eu', 'us']]]), new Map([['region', ['eu', 'apac']]])];
const IN_REGION = "region = attribute('region')";

function regional(signature: string, attributes: Caller['attributes']): Caller {
  const chain = attributes.map(attributePattern);
  const unmask = LABELS;
  return caller(
    signature,
    [
      granted(customer, [grant(customer, { id: 'g1', unmask, filter: IN_REGION }, chain)]),
      granted(order, [grant(order, { id: 'g2', unmask, filter: IN_REGION }, chain)]),
      granted(lineItem, [grant(lineItem, { id: 'g3' }, chain)]),
      granted(product, [grant(product, { id: 'g4' }, chain)]),
    ],
    attributes,
  );
}

export const CALLERS: ReadonlyMap<string, Caller> = new Map([
  // Sees everything in the clear.
  ['owner', caller('owner', whole({ unmask: LABELS }))],
  // Sees every row, each sensitive column under its mask.
  ['masked', caller('masked', whole({}))],
  // Sees the rows of one region, in the clear.
  ['regional', regional('regional', ONE_REGION)],
  // Acts for another: only the rows that both may see.
  ['chain', regional('chain', TWO_SUBJECTS)],
  // Has no region, so every row filter is false.
  ['homeless', regional('homeless', [new Map()])],
  // Two grants that overlap: European customers unmasked but without `labels`, and all VIPs masked.
  [
    'overlap',
    caller('overlap', [
      granted(customer, [
        grant(
          customer,
          {
            id: 'g-eu',
            columns: ['id', 'name', 'email', 'phone', 'ssn', 'tax_no', 'born', 'score', 'region', 'vip'],
            unmask: LABELS,
            filter: "region = 'eu'",
          },
          [],
        ),
        grant(
          customer,
          {
            id: 'g-vip',
            columns: ['id', 'email', 'phone', 'ssn', 'tax_no', 'born', 'score', 'vip', 'labels'],
            filter: 'vip',
          },
          [],
        ),
      ]),
      granted(order, [
        grant(order, { id: 'g-open', filter: "status = 'open'" }, []),
        grant(order, { id: 'g-id', columns: ['id', 'amount'] }, []),
      ]),
      granted(invoice, [
        grant(invoice, { id: 'g-all', unmask: LABELS, filter: 'total > 100' }, []),
        grant(invoice, { id: 'g-rest' }, []),
      ]),
      granted(tag, [
        grant(tag, { id: 'g-home', filter: 'id < 2' }, []),
        grant(tag, { id: 'g-ids', columns: ['id'] }, []),
      ]),
    ]),
  ],
  // Sees rows by many grants: of customers a list of regions, some of them in the clear; of orders ranges and a list.
  [
    'pieced',
    caller('pieced', [
      granted(customer, [
        grant(customer, { id: 'g-eu', unmask: LABELS, filter: "region = 'eu'" }, []),
        grant(customer, { id: 'g-us', filter: "region in ('us', 'eu')" }, []),
        grant(customer, { id: 'g-apac', unmask: LABELS, filter: "region = 'apac'" }, []),
        grant(customer, { id: 'g-vip', filter: 'vip' }, []),
      ]),
      granted(order, [
        grant(order, { id: 'g1', filter: 'amount >= 50 and amount < 70' }, []),
        grant(order, { id: 'g2', filter: 'amount between 10 and 20' }, []),
        grant(order, { id: 'g3', filter: "region = 'us'" }, []),
        grant(order, { id: 'g4', filter: 'amount > 15 and amount <= 30.5' }, []),
        grant(order, { id: 'g5', filter: 'amount >= 70 and amount < 80' }, []),
      ]),
    ]),
  ],
  // Some columns only; `vip` is denied by name; `score` is not granted, so it does not exist.
  [
    'narrow',
    caller('narrow', [
      granted(
        customer,
        [
          grant(
            customer,
            { id: 'g1', columns: ['id', 'name', 'vip', 'ssn', 'region'], filter: 'id < 100' },
            [],
          ),
        ],
        ['vip'],
      ),
      granted(order, [grant(order, { id: 'g2', columns: ['id', 'customer_id', 'status'] }, [])]),
    ]),
  ],
  // Sees VIPs only, and not that they are.
  [
    'filtered',
    caller('filtered', [
      granted(customer, [grant(customer, { id: 'g1', columns: ['id', 'name'], filter: 'vip' }, [])]),
    ]),
  ],
  // May not read the key of anything.
  [
    'keyless',
    caller('keyless', [
      granted(customer, [
        grant(customer, { id: 'g1', columns: ['name', 'region', 'vip'], filter: "region = 'eu'" }, []),
      ]),
      granted(order, [grant(order, { id: 'g2', columns: ['id', 'customer_id', 'amount'] }, [])], ['id']),
      [
        invoice.name,
        {
          grants: [grant(invoice, { id: 'g3' }, [])],
          masks: new Map([['tax', 'redact']]),
          denied: new Set(),
        },
      ],
    ]),
  ],
  // May aggregate customers in groups of two or more, orders likewise by id; tags are shown as rows.
  [
    'counted',
    caller('counted', [
      granted(customer, [grant(customer, { id: 'g1', unmask: LABELS, minimum: 2 }, [])]),
      granted(order, [grant(order, { id: 'g2', unmask: LABELS, minimum: 2 }, [])]),
      granted(productTag, [grant(productTag, { id: 'g3', minimum: 2 }, [])]),
      granted(tag, [grant(tag, { id: 'g4' }, [])]),
      granted(product, [grant(product, { id: 'g5' }, [])]),
    ]),
  ],
  // Sees European customers, and may aggregate all of them, VIPs in groups of three or more.
  [
    'partly',
    caller('partly', [
      granted(customer, [
        grant(customer, { id: 'g-eu', unmask: LABELS, filter: "region = 'eu'" }, []),
        grant(customer, { id: 'g-all', unmask: LABELS, minimum: 2 }, []),
        grant(customer, { id: 'g-vip', columns: ['id', 'vip'], filter: 'vip', minimum: 3 }, []),
      ]),
    ]),
  ],
  // May ask for the revenue of regions and states, and sees the ids of orders.
  [
    'measured',
    caller('measured', [
      granted(order, [
        grant(order, { id: 'g1', columns: ['region', 'status'], minimum: 2, metrics: ['revenue'] }, []),
        grant(order, { id: 'g2', columns: ['id', 'customer_id', 'region'], filter: "region = 'eu'" }, []),
      ]),
    ]),
  ],
  // May ask for the revenue of regions, states and times, and sees no order.
  [
    'timed',
    caller('timed', [
      granted(order, [
        grant(
          order,
          { id: 'g1', columns: ['region', 'status', 'placed'], minimum: 2, metrics: ['revenue'] },
          [],
        ),
      ]),
    ]),
  ],
  // Sees dear lines, by a filter over a computed column, and one region's orders.
  [
    'dear',
    caller('dear', [
      granted(lineItem, [grant(lineItem, { id: 'g1', filter: 'total > 45' }, [])]),
      granted(order, [grant(order, { id: 'g2', filter: "region = 'us'" }, [])]),
    ]),
  ],
  // May not read quantities, and knows of no product.
  [
    'priced',
    caller('priced', [
      granted(
        lineItem,
        [grant(lineItem, { id: 'g1', columns: ['id', 'order_id', 'price', 'quantity'] }, [])],
        ['quantity'],
      ),
      granted(order, [grant(order, { id: 'g2', columns: ['id', 'note'] }, [])]),
    ]),
  ],
  // Sees Ann's tickets, one state of each under its mask.
  ['desk', caller('desk', [granted(ticket, [grant(ticket, { id: 'g1', filter: "owner = 'ann'" }, [])])])],
  // Has no access to anything.
  ['nobody', caller('nobody', [])],
]);

/** Rows of the shop, for the engine that runs every emitted statement. */
export const SHOP_SQL = `

create table shop.customers (id int4, name text, email text, phone text, ssn text, tax_no text, born date,
  joined timestamptz, score numeric, vip bool, region_code text, profile jsonb, labels text[]);
insert into shop.customers values
  (1, 'Ada', 'ada@example.org', '+44 20', '111', 'T1', '1970-03-04', '2020-01-02 03:04:05+00', 9.5, true, 'eu', '{"tier": "gold"}', '{a,b}'),
  (2, 'Bo', 'bo@example.org', '+1 30', '222', 'T2', '1981-06-07', '2021-02-03 04:05:06+00', 7, false, 'us', '{"tier": "tin"}', '{b}'),
  (3, 'Cy', null, null, '333', 'T3', null, '2022-03-04 05:06:07+00', null, true, 'us', null, null),
  (4, 'Di', 'di@example.org', '+49 40', '444', null, '1992-09-10', null, 4.25, false, 'eu', '{}', '{}');
create table shop.orders (id int4, customer_id int4, placed timestamptz, shipped timestamp, amount numeric,
  status text, note text, region text);
insert into shop.orders values
  (10, 1, '2024-01-05 10:00:00+00', '2024-01-06 08:00:00', 100.50, 'open', 'gift', 'eu'),
  (11, 1, '2024-02-05 11:00:00+00', null, 57, 'paid', null, 'eu'),
  (12, 2, '2024-02-06 12:00:00+00', '2024-02-08 09:30:00', 20, 'open', 'call bo', 'us'),
  (13, 9, '2024-03-07 13:00:00+00', null, 5, 'void', 'lost', 'apac');
create table shop.products (id uuid, title text, weight float8, price numeric);
insert into shop.products values
  ('00000000-0000-0000-0000-00000000000a', 'Lamp', 1.5, 30),
  ('00000000-0000-0000-0000-00000000000b', 'Rug', 4, 80);
create table shop.line_items (id int8, order_id int4, product_id uuid, quantity int4, price numeric);
insert into shop.line_items values
  (100, 10, '00000000-0000-0000-0000-00000000000a', 2, 30),
  (101, 10, '00000000-0000-0000-0000-00000000000b', 1, 40.50),
  (102, 12, '00000000-0000-0000-0000-00000000000a', 1, 20);
create table shop.tags (id int4, label text);
insert into shop.tags values (1, 'home'), (2, 'sale'), (3, '[redacted]');
create table shop.product_tags (product_id uuid, tag_id int4);
insert into shop.product_tags values
  ('00000000-0000-0000-0000-00000000000a', 1), ('00000000-0000-0000-0000-00000000000a', 2),
  ('00000000-0000-0000-0000-00000000000b', 1);
create table shop.invoices (id int4, tax_no text, total numeric);
insert into shop.invoices values (1, 'T1', 150), (2, 'T2', 80), (3, 'T9', 120), (4, null, 10);
create table shop.parcels (id int4, order_id int4);
create type shop.state as enum ('open', 'busy', 'closed');
create table shop.tickets (id int4, owner text, state shop.state, veiled shop.state);
insert into shop.tickets values (1, 'ann', 'closed', 'busy'), (2, 'ann', 'open', 'open'), (3, 'bob', 'busy', 'closed');
`;
