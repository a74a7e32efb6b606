/** The console: built pages at `/console`, served by the same port as REST. */
export { type ConsoleFiles, consoleFiles } from './files.js';
export type { ConsoleOptions, DemoCaller, DemoSignIn } from './options.js';
export { CONSOLE_METHODS, consoleRoutes, DEMO_METHODS } from './route.js';
