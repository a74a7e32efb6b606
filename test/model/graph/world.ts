import { ready } from 'osl-compiler';
import { compileSnapshot, effectiveAccess, type IdentityClaims } from '../../../policy/index.js';
import { GraphDocuments } from '../../../src/ask/graph/graph-documents.js';
import { fullView, governedView, resolve } from '../../../src/model/graph/index.js';
import { type Manifest, parseManifest, parsePolicyDocument } from '../../../src/model/manifest/index.js';

await ready();

/** A library. `reader` sees books, authors and loans, some columns of them, and one facet; `clerk` sees all. */
export const MANIFEST = {
  version: 1,
  tenant: 'library',
  connectors: {
    db: {
      kind: 'pglite',
      tables: {
        'lib.book': {
          columns: {
            id: { type: 'int4' },
            title: { type: 'text', nullable: false },
            price: { type: 'numeric', sensitivity: 'commercial' },
            shelf: { type: 'text' },
            author_id: { type: 'int4' },
            vendor_id: { type: 'int4' },
          },
        },
        'lib.author': { columns: { id: { type: 'int4' }, name: { type: 'text', sensitivity: 'person' } } },
        'lib.vendor': { columns: { id: { type: 'int4' }, name: { type: 'text' } } },
        'lib.loan': {
          columns: { book_id: { type: 'int4' }, author_id: { type: 'int4' }, due: { type: 'date' } },
        },
        'lib.review': {
          columns: {
            id: { type: 'text' },
            book_id: { type: 'int4' },
            stars: { type: 'int4' },
            body: { type: 'text' },
          },
        },
      },
    },
  },
  entities: {
    vendor: {
      description: 'Whom books are bought from.',
      source: 'db.lib.vendor',
      primary_key: ['id'],
      columns: ['id', 'name'],
    },
    book: {
      description: 'A copy on a shelf.',
      source: 'db.lib.book',
      primary_key: ['id'],
      entity_key_columns: ['id', 'author_id', 'vendor_id'],
      columns: {
        id: { description: 'Its number.' },
        price: { description: 'What it cost.' },
        title: null,
        shelf: null,
        author_id: null,
        vendor_id: null,
      },
      legs: ['review', 'memo'],
      derived: {
        mood: {
          description: 'How it was liked.',
          facet: 'review',
          operator: 'CLASSIFY',
          labels: ['good', 'bad'],
        },
        theme: { facet: 'memo', operator: 'CLASSIFY', labels: ['war', 'peace'] },
      },
    },
    author: { source: 'db.lib.author', primary_key: ['id'], columns: ['id', 'name'] },
  },
  relationships: {
    bought: { description: 'From whom.', from: 'book.vendor_id', to: 'vendor.id', kind: 'many_to_one' },
    written: { from: 'book.author_id', to: 'author.id', kind: 'many_to_one' },
  },
  bridges: {
    loan: {
      source: 'db.lib.loan',
      left: { entity: 'book', columns: ['book_id'] },
      right: { entity: 'author', columns: ['author_id'] },
      columns: ['book_id', 'author_id', 'due'],
    },
  },
  facets: {
    review: {
      description: 'What readers say.',
      source: 'db.lib.review',
      entity: 'book',
      entity_key: 'book_id',
      document_id: 'id',
      text: 'body',
      metadata: ['stars'],
      scalar_indexed: ['book_id', 'stars'],
      versions: { raw: {} },
      retrieval: { max_top_k: 10 },
    },
    memo: {
      source: 'db.lib.review',
      entity: 'book',
      entity_key: 'book_id',
      document_id: 'id',
      text: 'body',
      versions: { raw: {} },
      retrieval: { max_top_k: 3 },
    },
  },
  metrics: {
    books: { description: 'How many copies.', entity: 'book', expression: 'count(*)' },
    spent: { description: 'What all copies cost.', entity: 'book', expression: 'sum(price)' },
  },
  lexicon: {
    copy: { refers_to: 'book', synonyms: ['volume'] },
    supplier: { refers_to: 'vendor' },
    place: { refers_to: 'book.shelf' },
    cost: { refers_to: 'book.price', synonyms: ['expense'] },
  },
};

export const POLICY = {
  version: 1,
  tenant: 'library',
  subjects: {
    'user:reader': { ceiling: ['reader'] },
    'user:clerk': { ceiling: ['clerk'] },
    'user:nobody': { ceiling: [] },
    'user:counter': { ceiling: ['counter'] },
    'user:meter': { ceiling: ['meter'] },
  },
  roles: {
    reader: {
      grants: [
        { on: 'book', columns: ['id', 'title', 'shelf', 'author_id'] },
        { on: 'author', columns: '*' },
        { on: 'loan', columns: ['book_id', 'author_id'] },
        { on: 'review', columns: '*' },
      ],
    },
    counter: { grants: [{ on: 'book', columns: ['id', 'shelf', 'author_id'], min_group_size: 5 }] },
    meter: { grants: [{ on: 'book', columns: [], min_group_size: 7, metrics: ['books'] }] },
    clerk: {
      grants: ['vendor', 'book', 'author', 'loan', 'review', 'memo'].map((on) => {
        return { on, columns: '*', unmask: ['person', 'commercial'] };
      }),
    },
  },
  masks: { person: 'redact', commercial: 'null' },
};

/** Documents that a test changes; what it makes of them the parsers check. */
export type Loose = Record<string, Record<string, Record<string, unknown>>>;

/** All that one caller can read of the graph, as bytes. JSON is YAML too. */
export interface Readable {
  readonly schema: string;
  readonly map: string;
  readonly resolved: readonly string[];
}

const TERMS = [
  'book',
  'copy',
  'cost',
  'supplier',
  'vendor',
  'price',
  'shelf',
  'place',
  'loan',
  'review',
  'memo',
  'name',
];

export function readable(
  manifest: unknown,
  policy: unknown,
  subject: string,
  features = false,
): Promise<Readable> {
  const parsed = parseManifest(JSON.stringify(manifest), 'manifest.yaml');
  const view = governedView(parsed, accessOf(parsed, policy, subject));
  return bytes(new GraphDocuments(view, null, features));
}

/** Contents that an administrator is shown. */
export function readableInFull(manifest: unknown): Promise<Readable> {
  const parsed = parseManifest(JSON.stringify(manifest), 'manifest.yaml');
  return bytes(new GraphDocuments(fullView(parsed), parsed.version, false));
}

export function accessOf(manifest: Manifest, policy: unknown, subject: string) {
  const text = typeof policy === 'string' ? policy : JSON.stringify(policy);
  const { document } = parsePolicyDocument(text, 'policy.yaml');
  const snapshot = compileSnapshot(document, manifest.catalog);
  const ceiling = [...(snapshot.subjects.get(subject)?.ceiling ?? [])];
  const identity: IdentityClaims = {
    tenant: document.tenant,
    subject,
    chain: [subject],
    roles: [],
    aclRoles: ceiling,
    issuedAt: 0,
    expiresAt: 300,
    tokenId: 'one',
  };
  return effectiveAccess(identity, snapshot, manifest.catalog);
}

async function bytes(readings: GraphDocuments): Promise<Readable> {
  const { body: schema } = await readings.schemaAt(new Map());
  const { etag, body: map } = await readings.domainMap;
  return {
    schema: schema.toString(),
    map: `${etag} ${map}`,
    resolved: TERMS.map((term) => JSON.stringify(resolve(term, readings.view))),
  };
}
