/** The web console: prebuilt pages served at `/console` on the REST port. */
export {
  CONSOLE_METHODS,
  type ConsoleOptions,
  consoleFiles,
  consoleRoutes,
  type DemoSignIn,
} from './route.js';
