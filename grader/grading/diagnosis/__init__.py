"""Diagnosis: finds the known mistake that explains a student's wrong answers."""
