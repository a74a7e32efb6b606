import { FUNCTIONS_CASES } from './cases-functions.js';
import { POLICIES_CASES } from './cases-policies.js';
import { PRIVILEGES_CASES } from './cases-privileges.js';
import { ROLES_CASES } from './cases-roles.js';
import { SPEED_CASES } from './cases-speed.js';
import { TABLES_CASES } from './cases-tables.js';
import type { Case } from './support.js';

export const CASES: readonly Case[] = [
  ...POLICIES_CASES,
  ...ROLES_CASES,
  ...TABLES_CASES,
  ...FUNCTIONS_CASES,
  ...PRIVILEGES_CASES,
  ...SPEED_CASES,
];
