import type { Rule } from '../finding.js';
import { BYPASS } from './bypass.js';
import { CHANNELS } from './channels.js';
import { COVERAGE } from './coverage.js';
import { DEPENDENCIES } from './dependencies.js';
import { FUNCTIONS } from './functions.js';
import { LIMITS_OF_CHECK } from './limits-of-check.js';
import { OPEN_CONDITIONS } from './open-conditions.js';
import { PARTITIONS } from './partitions.js';
import { PERFORMANCE } from './performance.js';
import { PRIVILEGES } from './privileges.js';
import { SETTINGS } from './settings.js';
import { UNUSED_POLICIES } from './unused-policies.js';
import { VIEWS } from './views.js';

/** Code of the rule for a catalog that could not be read as a whole. */
export const UNREAD_CATALOG = 'RLS059';

/** Groups of rules, in the order of the documentation. */
export const RULE_GROUPS: readonly (readonly [heading: string, rules: readonly Rule[]])[] = [
  ['Missing protection', COVERAGE],
  ['Conditions that let too much through', OPEN_CONDITIONS],
  ['Roles that row security does not apply to', BYPASS],
  ['Views and foreign tables', VIEWS],
  ['Partitions and inheritance', PARTITIONS],
  ['Functions', FUNCTIONS],
  ['Settings and claims', SETTINGS],
  ['Tables that conditions read', DEPENDENCIES],
  ['Privileges', PRIVILEGES],
  ['What becomes known of hidden rows', CHANNELS],
  ['Policies that change nothing', UNUSED_POLICIES],
  ['Speed', PERFORMANCE],
  ['The server, and limits of the check', LIMITS_OF_CHECK],
];

/** All rules, by code. */
export const RULES: readonly Rule[] = RULE_GROUPS.flatMap(([, rules]) => rules).toSorted((a, b) =>
  a.code < b.code ? -1 : 1,
);
