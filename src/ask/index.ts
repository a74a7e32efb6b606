/** Public interface of `src/ask`. */

export { SessionReads } from '../engine/index.js';
export { ask, prepare } from './data/ask.js';
export { explainPlan } from './data/explain.js';
export { type ChangedHistory, endOfHistory, type OverlapUpdate } from './data/overlap/decide.js';
export { type OverlapStore, OverlapThread } from './data/overlap/overlap-thread.js';
export type { AnswerParts, RunningParts } from './data/parts.js';
export { type AnswerFreshness, asOfText, type QueryAnswer } from './data/query-answer.js';
export type { DataQuestion, ResultDelivery } from './data/question.js';
export { Snapshots } from './data/question.js';
export { timeZoneNamed } from './data/runtime/step.js';
export { eventsOf, type SubscriptionEvent, type SubscriptionParts } from './data/subscription.js';
export { isShort } from './parsing/index.js';
export { type BreakGlassParts, breakGlass } from './request/break-glass.js';
export type { Origin, RequestCall } from './request/call.js';
export { type Caller, type ServedVersions, versionsOf } from './request/caller.js';
export { refusedCommand, refusedConnection, sessionCommand } from './request/calls-without-data.js';
export { currentSession, type TokenlessSession } from './request/identify.js';
export type {
  DecidingParts,
  PlanNotes,
  RequestParts,
} from './request/parts.js';
export { ForeignFault, publicError } from './request/public-error.js';
export { adminsOnly } from './request/refusals.js';
export type { QuestionBody } from './request/request-target.js';
export { type AnswerSteps, authorize, type Decision, respond } from './request/respond.js';
export {
  accountLogin,
  certificateLogin,
  countWrongPassword,
  currentRightsKey,
  login,
  renew,
  TooManyGuesses,
} from './request/session.js';
export { consumeToken, type SingleUse } from './request/single-use.js';
export { isTask } from './request/task.js';
export { type PreparedQuestion, QuestionRouter, type SessionQuestions } from './routes/questions.js';
export type { AnswerReceiver, RunValues, TimeLimit } from './routes/routed-question.js';
