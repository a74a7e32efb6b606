import { AGGREGATES } from './aggregates.js';
import type { Attack } from './attack.js';
import { CASTS } from './casts.js';
import { CATALOG } from './catalog.js';
import { COPY } from './copy.js';
import { CURSORS } from './cursors.js';
import { ERRORS } from './errors.js';
import { INFERENCE, TIMING } from './inference.js';
import { JOINS } from './joins.js';
import { PREDICATES } from './predicates.js';
import { IDENTITY, SESSION } from './session.js';

export { type Attack, type AttackClass, CLASSES } from './attack.js';

export const ATTACKS: readonly Attack[] = [
  ...ERRORS,
  ...PREDICATES,
  ...JOINS,
  ...AGGREGATES,
  ...CASTS,
  ...CATALOG,
  ...CURSORS,
  ...COPY,
  ...SESSION,
  ...IDENTITY,
  ...INFERENCE,
  ...TIMING,
];
