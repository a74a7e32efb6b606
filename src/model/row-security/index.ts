/** Row security in the database as a second line of defence, generated from the policy in force. */
export { type RowSecurity, rowSecurityOf } from './design.js';
export { RightsSigner, type RightsSource, rightsKey, signedRights } from './rights.js';
export { clearingScript, rowSecurityScript } from './script.js';
export { SCHEMA, SETTING } from './sql.js';
export { type RowSecurityStatus, standingOf } from './standing.js';
export { CannotWrite, writeRowSecurity } from './write.js';
