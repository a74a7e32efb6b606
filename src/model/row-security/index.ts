/** The second line: row-security policies of the database itself, written from the policy that is in force. */
export { type RowSecurity, rowSecurityOf } from './design.js';
export { RightsSigner, type RightsSource, rightsKey, signedRights } from './rights.js';
export { clearingScript, rowSecurityScript } from './script.js';
export { SCHEMA, SETTING } from './sql.js';
export { type RowSecurityStatus, standingOf } from './standing.js';
export { CannotWrite, writeRowSecurity } from './write.js';
