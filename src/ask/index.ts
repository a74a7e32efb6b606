/** The one way of every request, and the requests that ask the graph's data, its description, or for a session. */

export { type Answer, ask, prepare } from './data/ask.js';
export type { AnswerParts, RunningParts } from './data/parts.js';
export type { Delivery, Question } from './data/question.js';
export type { Body } from './request/asked.js';
export type { Call } from './request/call.js';
export { type Caller, type Versions, versionsOf } from './request/caller.js';
export type { DecidingParts, PlanNotes, RecordingParts, RequestParts } from './request/parts.js';
export { type Answering, consider, type Decision, respond } from './request/respond.js';
export { type SingleUse, useUp } from './request/single-use.js';
export { ForeignFault, publicError } from './request/told.js';
