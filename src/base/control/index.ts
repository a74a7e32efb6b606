/** State that several gateways share, stored in the schema `osl_control` of a Postgres database. */
export {
  type ControlDatabase,
  ControlFault,
  type ControlQueries,
  listenForChanges,
  openControl,
} from './database.js';
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
  addApproval,
  approvalsAt,
  databaseTime,
  decideStoredApproval,
  isSharedKey,
  lastRevocation,
  publishedAfter,
  publishedId,
  revokedAfter,
  revokeStoredApproval,
  type StoredApproval,
  shareClockOffset,
  shareRevocation,
  shareVersions,
} from './shared-state.js';
export { type ControlPlace, controlUrl } from './url.js';
