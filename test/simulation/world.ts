/**
 * The world of a run: what the database holds, what a version of the policy lets each caller see, and so what every
 * question must answer.
 */

export const CALLERS = 12;
export const DEALS = 1_200;

/** Kinds of questions; `id` chooses the row, or how many rows. */
export const KINDS = ['point', 'upTo', 'dated', 'division', 'total', 'tariff', 'unknown'] as const;
export type Kind = (typeof KINDS)[number];

export interface Question {
  readonly kind: Kind;
  readonly id: number;
}

const TEXTS: Readonly<Record<Kind, (id: string) => string>> = {
  point: (id) => `select id, amount, note from deal where id = ${id}`,
  upTo: (id) => `select id from deal where id <= ${id} order by id`,
  dated: (id) => `select closed from deal where id = ${id}`,
  division: (id) => `select 100 / (id - ${id}) from deal where id = ${id}`,
  total: () => 'select count(*), sum(amount) from deal',
  tariff: (id) => `select amount, closed from tariff where id = ${id}`,
  unknown: (id) => `select nothing from deal where id = ${id}`,
};

export function textOf({ kind, id }: Question): string {
  return TEXTS[kind](String(id));
}

/** The same with a parameter; null for a kind that takes none, or takes it twice. */
export function preparedTextOf(kind: Kind): string | null {
  return kind === 'total' || kind === 'unknown' || kind === 'division' ? null : TEXTS[kind]('$1');
}

export const ZONES = [
  { name: 'UTC', hours: 0, suffix: '+00' },
  { name: 'Asia/Tokyo', hours: 9, suffix: '+09' },
  { name: 'America/Panama', hours: -5, suffix: '-05' },
] as const;
export type Zone = (typeof ZONES)[number];

/** The moment at which a deal was closed, as a session of that zone prints it. */
export function closedAt(id: number, { hours, suffix }: Zone): string {
  const local = new Date(Date.UTC(2026, 0, 1, 12 + hours, 0, id));
  return `${local.toISOString().slice(0, 19).replace('T', ' ')}${suffix}`;
}

/** In every version a caller sees the deals of another owner. */
function ownerOf(caller: number, version: number): number {
  return (caller + version) % CALLERS;
}

function readsNotes(caller: number): boolean {
  return caller % 2 === 1;
}

/** Now and then the policy does not know a caller. */
function isLeftOut(caller: number, version: number): boolean {
  return version % 3 === 2 && caller % 4 === version % 4;
}

/** In every fourth version deals are those of a table with other amounts. */
export function priceOf(version: number): 7 | 9 {
  return version % 4 === 3 ? 9 : 7;
}

export function policyOf(version: number): string {
  const subjects = Array.from({ length: CALLERS }, (_, n) =>
    isLeftOut(n, version)
      ? ''
      : `  user:${n}: { ceiling: [${readsNotes(n) ? 'notes' : 'own'}], attributes: { owner: "owner ${ownerOf(n, version)}" } }`,
  );
  return `version: 1
tenant: sim
subjects:
${subjects.join('\n')}
  user:admin: { ceiling: [own], admin: [TENANT_ADMIN], attributes: { owner: nobody } }
roles:
  own:
    grants:
      - { on: deal, columns: "*", rows: "owner = attribute('owner')" }
      - { on: tariff, columns: "*", rows: "owner = attribute('owner')" }
  notes:
    grants:
      - { on: deal, columns: "*", rows: "owner = attribute('owner')", unmask: [pii] }
      - { on: tariff, columns: "*", rows: "owner = attribute('owner')" }
masks: { pii: redact }
limits: { query: 1000000, catalog: 1000000 }
`;
}

const DEAL_COLUMNS = `
        columns:
          id: { type: int4, nullable: false }
          owner: { type: text, nullable: false }
          amount: { type: int4, nullable: false }
          note: { type: text, sensitivity: pii }
          closed: { type: timestamptz, nullable: false }`;

export function manifestOf(version: number): string {
  return `version: 1
tenant: sim
connectors:
  db:
    kind: postgres
    url_env: SIM_DATABASE_URL
    tables:
      app.deals:${DEAL_COLUMNS}
      app.dearer:${DEAL_COLUMNS}
      app.tariffs:${DEAL_COLUMNS}
entities:
  deal: { source: db.app.${priceOf(version) === 7 ? 'deals' : 'dearer'}, primary_key: [id], columns: [id, owner, amount, note, closed] }
  tariff: { source: db.app.tariffs, primary_key: [id], columns: [id, owner, amount, closed], cache: { max_age: 60 } }
`;
}

/** A row of the database. Tables differ in amounts only. */
export interface Deal {
  readonly id: number;
  readonly owner: string;
  readonly amount: number;
  readonly note: string;
}

const PRICES: Readonly<Record<string, number>> = { deals: 7, dearer: 9, tariffs: 5 };

export function dealOf(table: string, id: number): Deal {
  return { id, owner: `owner ${id % CALLERS}`, amount: (PRICES[table] ?? 0) * id, note: `note ${id}` };
}

/** Rows of an answer as text, or the SQLSTATE of its error. */
export type Expected = { readonly rows: readonly (readonly string[])[] } | { readonly sqlstate: string };

/** A version of the policy, and the manifest beside it. */
export interface Version {
  readonly policy: number;
  /** Amount of deal 1: which table the manifest says deals are in. */
  readonly price: 7 | 9;
}

/** Answer that a caller gets under a version; null if it is refused everything. */
export function expectedOf(
  { kind, id }: Question,
  caller: number,
  { policy, price }: Version,
  zone: Zone,
): Expected | null {
  if (isLeftOut(caller, policy)) return null;
  const owner = ownerOf(caller, policy);
  const sees = id % CALLERS === owner && id >= 1 && id <= DEALS;
  const ids = (most: number): readonly number[] =>
    Array.from({ length: Math.min(most, DEALS) }, (_, i) => i + 1).filter((n) => n % CALLERS === owner);
  switch (kind) {
    case 'point':
      return {
        rows: sees ? [[`${id}`, `${price * id}`, readsNotes(caller) ? `note ${id}` : '[redacted]']] : [],
      };
    case 'upTo':
      return { rows: ids(id).map((n) => [`${n}`]) };
    case 'dated':
      return { rows: sees ? [[closedAt(id, zone)]] : [] };
    case 'division':
      return sees ? { sqlstate: '22012' } : { rows: [] };
    case 'total': {
      const all = ids(DEALS);
      return { rows: [[`${all.length}`, `${price * all.reduce((sum, n) => sum + n, 0)}`]] };
    }
    case 'tariff':
      return { rows: sees ? [[`${5 * id}`, closedAt(id, zone)]] : [] };
    case 'unknown':
      return { sqlstate: '42703' };
  }
}
