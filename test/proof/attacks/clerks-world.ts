import type { Column, MaskKind } from 'osl-compiler';
import type { World } from '../oracle/world.js';

/** The shop as the generator of questions needs it: a clerk's columns, and how each is masked. */
const LABELLED: Readonly<Record<string, readonly (readonly [string, Column['type'], string | null])[]>> = {
  customer: [
    ['id', 'int4', null],
    ['name', 'text', null],
    ['ssn', 'text', 'pii'],
    ['email', 'text', 'pii'],
    ['salary', 'int4', 'pay'],
    ['phone', 'text', 'contact'],
    ['born', 'date', 'birth'],
    ['region', 'text', null],
    ['amt', 'int4', null],
    ['score', 'numeric', null],
    ['joined', 'timestamptz', null],
  ],
  purchase: [
    ['id', 'int4', null],
    ['customer_id', 'int4', null],
    ['customer_phone', 'text', 'contact'],
    ['region', 'text', null],
    ['total', 'numeric', null],
    ['memo', 'text', null],
  ],
};
const MASKS = new Map<string, MaskKind>([
  ['pii', 'redact'],
  ['pay', 'null'],
  ['contact', 'hash'],
  ['birth', 'year'],
]);
export const CLERKS_WORLD: World = {
  subjects: [],
  tables: Object.entries(LABELLED).map(([name, columns]) => ({
    name,
    columns: columns.map(([of, type, sensitivity]) => ({
      name: of,
      physical: of,
      type,
      description: null,
      nullable: true,
      sensitivity,
      keyDomain: null,
    })),
    sealed: ['id', 'phone', 'customer_id', 'customer_phone'],
    rows: [],
    grants: [{ columns: new Set(columns.map(([of]) => of)), unmask: new Set<string>(), filter: null }],
    masks: MASKS,
    denied: new Set<string>(),
    computed: [],
  })),
};
