import { manifestText, policyText } from '../../support/model-text.js';

/** A helpdesk whose tickets have a text, and whose callers see different rows and columns of them. */
export const TICKETS_MANIFEST = manifestText(
  'desk',
  {
    'desk.tickets': `id int4, region text not null,
    status text not null { stored: enum desk.status, labels: [urgent, open, closed] },
    subject text not null, body text pii, amount numeric not null, seen timestamptz not null,
    doc jsonb not null, notes text[]`,
    'desk.agents': 'id int4, region text not null',
  },
  `operators: { max_rows: 12 }
entities:
  ticket:
    source: db.desk.tickets
    primary_key: [id]
    entity_key_columns: [id]
    columns: [id, region, status, subject, body, amount, seen, doc, notes]
  agent: { source: db.desk.agents, primary_key: [id], entity_key_columns: [id], columns: [id, region] }
`,
);

/**
 * \`user:all\` everything · \`user:eu\` rows of its region · \`user:veil\` bodies masked · \`user:part\` bodies of its region,
 * masked elsewhere · \`user:den\` no bodies · \`user:sum\` figures over three rows at least · \`user:nil\` nothing
 */
export const TICKETS_POLICY = policyText(
  'desk',
  {
    'user:all': 'whole',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:veil': 'veiled',
    'user:part': 'veiled, partly { attributes: { region: eu } }',
    'user:den': 'whole, no_bodies',
    'user:sum': 'figures',
    'user:nil': '',
  },
  `roles:
  whole:
    grants:
      - { on: ticket, columns: "*", unmask: [pii] }
      - { on: agent, columns: "*" }
  regional:
    grants:
      - { on: ticket, columns: "*", unmask: [pii], rows: "region = attribute('region')" }
  veiled:
    grants:
      - { on: ticket, columns: "*" }
  partly:
    grants:
      - { on: ticket, columns: "*", unmask: [pii], rows: "region = attribute('region')" }
  no_bodies:
    grants: []
    deny:
      - { on: ticket, columns: [body] }
  figures:
    grants:
      - { on: ticket, columns: "*", unmask: [pii], min_group_size: 3 }
masks:
  pii: redact
order: { agent: by_key }
limits:
  query: 100000
  sample: 100000
  schema: 100000
  authoring: 100000
  catalog: 100000
`,
);

export interface Ticket {
  readonly id: number;
  readonly region: 'eu' | 'us';
  readonly status: 'urgent' | 'open' | 'closed';
  readonly body: string | null;
}

export const TICKETS: readonly Ticket[] = [
  { id: 1, region: 'eu', status: 'open', body: 'please refund the money, I want a refund' },
  { id: 2, region: 'us', status: 'open', body: 'the delivery is late, where is the delivery van' },
  { id: 3, region: 'eu', status: 'closed', body: 'delivery came late again' },
  { id: 4, region: 'us', status: 'closed', body: 'refund was refused' },
  { id: 5, region: 'eu', status: 'urgent', body: null },
  { id: 6, region: 'us', status: 'urgent', body: 'delivery came late again' },
  { id: 7, region: 'eu', status: 'open', body: 'delivery came late again' },
  { id: 8, region: 'us', status: 'open', body: '' },
];

export function ticketScript(tickets: readonly Ticket[]): string {
  const rows = tickets.map(({ id, region, status, body }) => {
    const text = body === null ? 'null' : `'${body}'`;
    const values = `${id}, '${region}', '${status}', 'Ticket ${id}', ${text}, ${id}.50, '2026-01-0${(id % 9) + 1} 10:00+00'`;
    return `(${values}, '{"n": 12345678901234567890.10, "id": ${id}}', array['a,"b', null])`;
  });
  return `
create schema desk;
create type desk.status as enum ('urgent', 'open', 'closed');
create table desk.tickets (id int primary key, region text not null, status desk.status not null,
  subject text not null, body text, amount numeric not null, seen timestamptz not null, doc jsonb not null, notes text[]);
insert into desk.tickets values ${rows.join(',\n')};
create table desk.agents (id int primary key, region text not null);
insert into desk.agents values (1, 'eu'), (2, 'us');
`;
}
