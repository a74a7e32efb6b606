/** Row security in the database as a second line of defence, generated from the policy in force. */
export { type RowSecurityDesign, rowSecurityOf, SCHEMA, SETTING } from './design.js';
export { RightsSigner, type RightsSource, rightsKey, signedRights } from './rights.js';
export {
  clearingScript,
  ForeignRowSecurity,
  MissingPrivilege,
  OTHERS_POLICY,
  ROWS_POLICY,
  rowSecurityScript,
  writeRowSecurity,
} from './script.js';
export { type RowSecurityStatus, rowSecurityStatus } from './status.js';
