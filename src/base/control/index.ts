/** State that several gateways share, stored in the schema `osl_control` of a Postgres database. */
export {
  addApproval,
  approvalsAt,
  decideStoredApproval,
  revokeStoredApproval,
  type StoredApproval,
} from './approvals.js';
export { databaseTime, shareClockOffset } from './clocks.js';
export { type ControlDatabase, ControlFault, type ControlQueries, openControl } from './database.js';
export { MIGRATIONS, migrate, requireSchema } from './migrations.js';
export {
  type Activation,
  type ActivationBase,
  type ActivePolicy,
  type Authorship,
  activatePolicy,
  activations,
  activePolicy,
  ControlConflict,
  controlVersions,
  policyText,
  policyVersions,
  pushPolicy,
  tenantsIn,
} from './policies.js';
export {
  isSharedKey,
  lastRevocation,
  publishedAfter,
  publishedId,
  revokedAfter,
  shareRevocation,
  shareVersions,
} from './shared-state.js';
export { listenForChanges } from './signals.js';
export { type ControlPlace, controlUrl } from './url.js';
