"""The proving ground: demo, embedded servers, drills. Imported by nobody."""
